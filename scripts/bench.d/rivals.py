"""Measures lat-probe and its rivals in turn: fio and ioping on this host; perftest, qperf and fio's rdma engine in the lab.

Called by scripts/bench, which has built the program. It needs only the standard library.
"""

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.dont_write_bytecode = True
from contests import FILE_BYTES, host_contests, lab_contests  # noqa: E402
from figures import MINIMUM_ROUNDS  # noqa: E402
from paper import write, write_whole  # noqa: E402
from record import SCHEMA, part  # noqa: E402
from tools import Failed, Unreadable, document  # noqa: E402
from turns import run, say, take_turns  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent.parent
LAB_FILE = "rivals-part.json"
COMMANDS = {"host": 200_000, "lab": 5_000}
FIRST_PORT = 20_000
VERSIONS = {"lat-probe": None, "fio": ["fio", "--version"], "ioping": ["ioping", "-v"], "perftest": ["ib_read_lat", "--version"],
            "qperf": ["qperf", "--version"]}
TOOLS = {"host": ("lat-probe", "fio", "ioping"), "lab": ("lat-probe", "perftest", "qperf", "fio")}


def parse(arguments):
    parser = argparse.ArgumentParser(prog="scripts/bench rivals", description=__doc__, allow_abbrev=False)
    parser.add_argument("place", nargs="?", choices=("host", "lab", "guest"), metavar="host|lab",
                        help="only there; the record keeps what it has of the other. Default: both")
    parser.add_argument("--rounds", type=int, default=MINIMUM_ROUNDS, metavar="N", help=f"at least {MINIMUM_ROUNDS}, the default")
    parser.add_argument("--output", type=Path, default=Path("results/reference"), metavar="FOLDER",
                        help="for rivals.json and rivals.md; default results/reference")
    parser.add_argument("--commands", type=int, metavar="N", help="per run; default 200,000 on the host, 5,000 in the lab")
    parser.add_argument("--lat-probe", default="target/release/lat-probe", metavar="FILE", help="the program to measure")
    options = parser.parse_args(arguments)
    if options.rounds < MINIMUM_ROUNDS:
        parser.error(f"--rounds {options.rounds}: at least {MINIMUM_ROUNDS}; fewer give no interval")
    if options.commands is not None and not 100 <= options.commands <= 10_000_000:
        parser.error(f"--commands {options.commands}: 100 to 10,000,000")
    return options


def settings_for(place, options):
    return argparse.Namespace(lat_probe=options.lat_probe, commands=options.commands or COMMANDS[place])


def version(command):
    """What a tool calls itself, or None if it is not there. perftest's exit code of --version says nothing."""
    if shutil.which(command[0]) is None:
        return None
    said = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=10, check=False)
    words = (said.stdout + said.stderr).replace("fio-", " ").split()
    return next((word for word in words if word[0].isdigit()), "unknown")


def load():
    return round(os.getloadavg()[0], 2)


def facts(place, settings):
    """What the figures depend on. No name of a host: only what kind of machine it is."""
    said = document("lat-probe", run([settings.lat_probe, "--engine", "null", "--count", "1000", "--format", "json"], 30))
    host = {name: said["host"].get(name) for name in ("kernel", "cpu_model", "hypervisor", "clocksource", "governor")}
    versions = {name: version(VERSIONS[name] or [settings.lat_probe, "--version"]) for name in TOOLS[place]}
    return {"started_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "commands": settings.commands, "tools": versions,
            "host": {**host, "cpus": len(os.sched_getaffinity(0)), "clock": said["clock"]["source"], "place": place},
            "load_before": load()}


def measured(place, options, contests_of):
    settings = settings_for(place, options)
    known = facts(place, settings)
    contests = contests_of(settings)
    take_turns(contests, options.rounds, FIRST_PORT)
    return part(place, {**known, "load_after": load()}, options.rounds, contests)


def file_system(folder):
    """The kind of file system that holds a folder, as /proc/mounts has it: the longest mount point counts."""
    place, best = str(Path(folder).resolve()), ("", "")
    for line in Path("/proc/mounts").read_text(encoding="utf-8").splitlines():
        _, point, kind = line.split()[:3]
        if (place + "/").startswith(point.rstrip("/") + "/") and len(point) >= len(best[0]):
            best = (point, kind)
    return best[1]


def on_host(options):
    with contextlib.ExitStack() as stack:
        files = {}
        for place in ("/dev/shm", "target"):
            if not os.access(place, os.W_OK) or file_system(place) in files:
                say(f"{place} is left out: it cannot be written, or is the same kind of file system as the one before")
                continue
            folder = stack.enter_context(tempfile.TemporaryDirectory(dir=place, prefix="rivals-"))
            # Relative, because the record has no use for where this tree is.
            file = os.path.join(place, os.path.basename(folder), "file")
            with open(file, "wb") as stream:
                stream.write(os.urandom(FILE_BYTES))
                os.fsync(stream.fileno())
            files[file_system(place)] = file
        cpu = max(os.sched_getaffinity(0))
        return measured("host", options, lambda settings: host_contests(settings, files, cpu))


def in_guest(options):
    """Runs as root in the lab; the part goes where files survive the guest."""
    found = measured("lab", options, lab_contests)
    write_whole(Path(os.environ["LAB_OUT"]) / LAB_FILE, json.dumps(found))


def in_lab(options):
    result = ROOT / "target/lab/out" / LAB_FILE
    result.unlink(missing_ok=True)
    command = ["scripts/lab", "--timeout", "900", "--", "python3", "scripts/bench.d/rivals.py", "guest", "--rounds",
               str(options.rounds), "--lat-probe", options.lat_probe]
    if options.commands:
        command += ["--commands", str(options.commands)]
    code = subprocess.run(command, stdin=subprocess.DEVNULL, check=False).returncode
    if code != 0:
        raise SystemExit(code if code == 77 else f"rivals: the part in the lab failed, exit code {code}")
    return json.loads(result.read_text(encoding="utf-8"))


def kept(folder):
    """The parts of an earlier record, so that one place can be measured anew."""
    try:
        record = json.loads((folder / "rivals.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    if record.get("schema") != SCHEMA:
        raise SystemExit(f"rivals: {folder / 'rivals.json'}: its schema is {record.get('schema')!r}, not {SCHEMA}; move it away")
    return record["parts"]


def main():
    options = parse(sys.argv[1:])
    options.output = options.output.absolute()
    os.chdir(ROOT)
    try:
        if options.place == "guest":
            return in_guest(options)
        parts = kept(options.output)
        if options.place != "lab":
            parts["host"] = on_host(options)
        if options.place != "host":
            parts["lab"] = in_lab(options)
    except (Failed, Unreadable) as failure:
        raise SystemExit(f"rivals: {failure}") from failure
    write({"schema": SCHEMA, "parts": parts}, options.output)
    for row in (row for place in parts.values() for row in place["rows"]):
        shown = row["latency"]["verdict"] if row["latency"] else row["status"]
        print(f"{row['contest']:22} {row['ours']:10} {row['rival']:24} {row['their_figure']:12} {shown}")
    print(f"written: {options.output / 'rivals.json'}, rivals.md")
    return None


if __name__ == "__main__":
    main()
