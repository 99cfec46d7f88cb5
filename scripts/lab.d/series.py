"""A series of rounds in the form that `lat-probe compare` reads, lat-probe.series/1, stored after each of them."""

import json
import os
import random
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

SCHEMA = "lat-probe.series/1"
PROBE = Path(__file__).resolve().parent.parent.parent / "target/release/lat-probe"


class BadSeries(Exception):
    """The folder has something else than what was asked for; the text says what."""


class Place(NamedTuple):
    """Where a round stands: its number from 1, its block from 0, and the index of its side."""

    number: int
    block: int
    side: int


class Series:
    """The rounds so far, and which one is next."""

    def __init__(self, folder, document):
        self.folder = folder
        self.document = document

    @classmethod
    def begin(cls, folder, makings, asked, resume):
        """A new series, or with `resume` the one in the folder if it is of the same."""
        found = cls._read(folder)
        if found is not None and found.rounds:
            if not resume:
                raise BadSeries(f"{found.path}: there is a series already: --resume goes on with it, or name another folder")
            for key, here in (("sides", makings), ("measurements", [asked])):
                there = found.document.get(key)
                if there != here:
                    raise BadSeries(f"--resume: {found.path} has other {key} than were asked for: "
                                    f"{json.dumps(there)} instead of {json.dumps(here)}")
            return found
        now = time.time_ns()
        series = cls(folder, {
            "schema": SCHEMA, "version": _version(),
            "started_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now // 10**9)),
            "seed": now >> 11,  # 53 bits, which every reader of JSON keeps.
            "sides": makings, "measurements": [asked], "rounds": []})
        try:
            folder.mkdir(parents=True, exist_ok=True)
            series._store()  # What cannot be written is found out before the first boot.
        except OSError as error:
            raise BadSeries(f"{folder}: {error.strerror}") from None
        return series

    @classmethod
    def _read(cls, folder):
        series = cls(folder, None)
        try:
            series.document = json.loads(series.path.read_text(encoding="utf-8"))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, ValueError) as error:
            raise BadSeries(f"{series.path}: {error}") from None
        if not isinstance(series.document, dict) or series.document.get("schema") != SCHEMA or \
                not isinstance(series.document.get("rounds"), list):
            raise BadSeries(f"{series.path}: this is no {SCHEMA}")
        return series

    @property
    def path(self):
        return self.folder / "series.json"

    @property
    def rounds(self):
        return self.document["rounds"]

    @property
    def names(self):
        return [making["name"] for making in self.document["sides"]]

    @property
    def seed(self):
        return self.document["seed"]

    def next_place(self):
        """Blocks have generators of their own, so that a series that is taken up again goes on as it would have."""
        taken = len(self.rounds)
        block = taken // 4
        first = random.Random(f"{self.seed} {block}").randrange(2)
        return Place(taken + 1, block, (first, 1 - first, 1 - first, first)[taken % 4])

    def add(self, place, path):
        """Takes a result from its file and stores the series. Returns the first point's p50 in words."""
        result = json.loads(path.read_text(encoding="utf-8"))
        self.rounds.append({"block": place.block, "side": self.names[place.side], "result": result})
        self._store()
        p50 = result["points"][0]["latency_ns"]["percentiles"].get("50") if result.get("points") else None
        return "unknown" if p50 is None else f"{p50:,.0f} ns"

    def _store(self):
        """The file is there as a whole or as it was, whenever this is interrupted."""
        beside = self.path.with_suffix(".part")
        with open(beside, "w", encoding="utf-8") as file:
            json.dump(self.document, file)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(self.path)


def _version():
    said = subprocess.run([str(PROBE), "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout
    return said.split()[-1]
