"""`scripts/plot` on what was just measured, its pictures read back. `scripts/setup --tests` installs what it needs.

    target/venv-plot/bin/python -B tests/plot_script.py

The binary is target/debug/lat-probe. Pictures are left in target/plots, to be looked at."""

import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree
from pathlib import Path

import matplotlib.image
import numpy

ROOT = Path(__file__).resolve().parents[1]
LAT_PROBE = ROOT / "target/debug/lat-probe"
PLOT = ROOT / "scripts/plot"
PICTURES = ROOT / "target/plots"
# What the files of this test allow.
KINDS = {"cdf": "sweep.json", "ccdf": "sweep.json", "percentiles": "sweep.json", "histogram": "sweep.json", "timeline": "long.npy",
         "depth": "sweep.json", "sizes": "sizes.json", "shift": "comparison.json"}


class Plot(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = Path(tempfile.mkdtemp(prefix="lat-probe-plot."))
        shutil.rmtree(PICTURES, ignore_errors=True)
        PICTURES.mkdir(parents=True)
        # A locale with a comma must change nothing.
        os.environ["LC_ALL"] = "de_DE.UTF-8"
        cls.measure("fill", "--allow-write", "file", "--size", "4M")
        read = ("--engine", "libaio", "--target", "file", "--buffered", "--rw", "randread", "--count", "2000")
        cls.measure(*read, "--qd", "1,2,4", "--output", "sweep.json")
        cls.measure(*read, "--bs", "512,4k,64k", "--output", "sizes.json")
        cls.measure("--engine", "null", "--count", "1000000", "--output", "long.json", "--samples", "long.npy")
        for round in range(6):
            for side, delay in (("a", "10us"), ("b", "12us")):
                cls.measure("--engine", "spin", "--delay", delay, "--count", "1000", "--output", f"{side}{round}.json")
        done = subprocess.run([LAT_PROBE, "compare", "a=a?.json", "b=b?.json", "--output", "comparison.json"], cwd=cls.folder,
                              capture_output=True, text=True)
        assert (cls.folder / "comparison.json").exists(), done.stderr

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    @classmethod
    def measure(cls, *arguments):
        done = subprocess.run([LAT_PROBE, *arguments], cwd=cls.folder, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        assert done.returncode == 0, f"{arguments}: {done.stderr}"

    def plot(self, *arguments):
        done = subprocess.run([PLOT, *arguments], cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        self.assertNotIn("Traceback", done.stderr)
        return done

    def drawn(self, *arguments):
        done = self.plot(*arguments)
        self.assertEqual(done.returncode, 0, f"{arguments}: {done.stderr}")
        return done

    def words(self, path):
        return " ".join(text.strip() for text in xml.etree.ElementTree.parse(path).getroot().itertext() if text.strip())

    def test_every_kind_is_a_picture_in_both_formats(self):
        for kind, source in KINDS.items():
            with self.subTest(kind):
                picture, drawing = PICTURES / f"{kind}.png", PICTURES / f"{kind}.svg"
                self.drawn(kind, "-o", str(picture), source)
                pixels = matplotlib.image.imread(picture)
                self.assertGreater(min(pixels.shape[:2]), 400)
                self.assertGreater(len(numpy.unique(pixels.reshape(-1, pixels.shape[2]), axis=0)), 20)
                self.drawn(kind, "-o", str(drawing), source)
                words = self.words(drawing)
                self.assertRegex(words, r"\b(ns|µs|ms)\b")
                if kind != "shift":
                    self.assertIn("loor", words)
                self.assertNotRegex(words, r"\d,\d{1,2}\b", "a decimal comma")

    def test_titles_say_what_was_measured(self):
        path = PICTURES / "one.svg"
        self.drawn("cdf", "--point", "3", "-o", str(path), "sweep.json")
        words = self.words(path)
        for part in ("libaio", "randread", "4 KiB", "depth 4", "2,000", "file"):
            self.assertIn(part, words)
        floor = json.loads((self.folder / "sweep.json").read_text())["instrument"]["floor_ns"]["percentiles"]["50"]
        self.assertIn(f"{floor:.1f}".rstrip("0").rstrip("."), words)

    def test_the_same_input_gives_the_same_bytes(self):
        for name in ("once.svg", "twice.svg"):
            self.drawn("histogram", "-o", name, "long.json")
        self.assertEqual((self.folder / "once.svg").read_bytes(), (self.folder / "twice.svg").read_bytes())

    def test_lines_differ_without_colour(self):
        self.drawn("percentiles", "-o", "lines.svg", "sweep.json")
        text = (self.folder / "lines.svg").read_text()
        self.assertGreaterEqual(len(set(re.findall(r"stroke-dasharray: ([\d. ,]+)", text))), 2)

    def test_all_draws_what_the_files_allow(self):
        self.drawn("all", "-o", "all", "--format", "png,svg", "sweep.json")
        names = {path.name for path in (self.folder / "all").iterdir()}
        self.assertTrue({"cdf.png", "cdf.svg", "depth.png"} <= names, names)
        self.assertNotIn("shift.png", names)

    def test_no_samples_are_an_empty_frame(self):
        document = json.loads((self.folder / "long.json").read_text())
        point = document["points"][0]
        point["latency_ns"] = {"n": 0, "min": None, "max": None, "mean": None, "stddev": None,
                               "percentiles": {key: None for key in point["latency_ns"]["percentiles"]}}
        point["histogram"] = {"buckets": []}
        point["outliers"] = point["timeline"] = []
        (self.folder / "none.json").write_text(json.dumps(document))
        for kind in ("cdf", "histogram", "timeline"):
            self.drawn(kind, "-o", "none.svg", "none.json")
            self.assertIn("no samples", self.words(self.folder / "none.svg"))

    def test_bad_files_are_named(self):
        good = (self.folder / "long.json").read_text()
        samples = (self.folder / "long.npy").read_bytes()
        bad = {
            "empty.json": b"", "cut.json": good[:900].encode(), "foreign.json": b'{"a": 1}', "deep.json": b"[" * 100_000,
            "newer.json": good.replace("lat-probe.result/1", "lat-probe.result/2").encode(), "binary.json": bytes(range(256)),
            "types.json": b'{"schema": "lat-probe.result/1", "points": 3}', "cut.npy": samples[:5000], "empty.npy": b"",
            "foreign.csv": b"a,b\n1,2\n",
        }
        numpy.save(self.folder / "other.npy", numpy.arange(5))
        numpy.save(self.folder / "pickle.npy", numpy.array([{"a": 1}], dtype=object), allow_pickle=True)
        for name, content in bad.items():
            (self.folder / name).write_bytes(content)
        for name in [*bad, "other.npy", "pickle.npy", "missing.json", "."]:
            with self.subTest(name):
                done = self.plot("cdf", "-o", "bad.png", name)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(f"{name}", done.stderr)
                self.assertFalse((self.folder / "bad.png").exists())

    def test_what_a_file_does_not_allow_is_said(self):
        for kind, source in (("shift", "long.json"), ("sizes", "long.json"), ("depth", "comparison.json"), ("pie", "long.json")):
            done = self.plot(kind, "-o", "bad.png", source)
            self.assertEqual(done.returncode, 2, f"{kind}: {done.stderr}")

    def test_a_full_disk_leaves_the_old_picture(self):
        small = self.folder / "small"
        small.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", small], capture_output=True)
        if mounted.returncode != 0:
            self.skipTest("a small tmpfs needs root")
        try:
            (small / "old.png").write_text("old")
            done = self.plot("cdf", "-o", "small/old.png", "long.json")
            self.assertEqual((done.returncode, (small / "old.png").read_text()), (1, "old"), done.stderr)
            self.assertEqual([path.name for path in small.iterdir()], ["old.png"])
        finally:
            subprocess.run(["umount", small], check=True)


if __name__ == "__main__":
    unittest.main(verbosity=2)
