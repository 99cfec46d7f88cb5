"""Every export is read by the tools that it is made for. `scripts/setup --tests` installs them.

    target/venv-readers/bin/python -B tests/exports_script.py

The binary is target/debug/lat-probe, built with the feature parquet."""

import csv
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import numpy
import pyarrow.parquet
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader
from prometheus_client import parser
from prometheus_client.openmetrics import parser as openmetrics_parser

ROOT = Path(__file__).resolve().parents[1]
LAT_PROBE = ROOT / "target/debug/lat-probe"
COLUMNS = ["start_ns", "latency_ns", "submit_ns", "wait_ns", "response_ns", "job", "op"]


def run(folder, *command):
    done = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        raise AssertionError(f"{command}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout


class Exports(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = Path(tempfile.mkdtemp(prefix="lat-probe-exports."))
        # A locale with a comma must change nothing.
        os.environ["LC_ALL"] = "de_DE.UTF-8"
        run(cls.folder, LAT_PROBE, "fill", "--allow-write", "file", "--size", "4M")
        for name, depth in (("phased", "1"), ("deep", "4")):
            cls.measure(name, "--phases", "--qd", depth, "--samples", f"{name}.npy")
        cls.measure("sweep", "--qd", "1,2,4")
        cls.points = {name: cls.result(name)["points"] for name in ("phased", "deep", "sweep")}

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    @classmethod
    def measure(cls, name, *options):
        run(cls.folder, LAT_PROBE, "--engine", "libaio", "--target", "file", "--buffered", "--rw", "randread", "--bs",
            "4k", "--count", "5000", "--label", f"{name} \"1\\2\"", "--output", f"{name}.json", *options)

    @classmethod
    def result(cls, name):
        return json.loads((cls.folder / f"{name}.json").read_text())

    def export(self, to, name, *options):
        return run(self.folder, LAT_PROBE, "export", "--to", to, f"{name}.json", *options)

    def latency(self, name):
        return self.points[name][0]["latency_ns"]

    def assert_samples(self, name, column):
        """Whether what a reader has of the samples gives the figures of the result."""
        latencies = numpy.sort(column("latency_ns"))
        latency = self.latency(name)
        self.assertEqual(len(latencies), latency["n"])
        self.assertEqual(latencies[-1], latency["max"])
        self.assertEqual(latencies[(len(latencies) + 1) // 2 - 1], latency["percentiles"]["50"])
        self.assertTrue(numpy.allclose(column("submit_ns") + column("wait_ns"), column("latency_ns"), atol=0.01))
        self.assertTrue((column("job") == 0).all() and (column("op") == numpy.arange(latency["n"])).all())

    def test_numpy_reads_samples(self):
        samples = numpy.load(self.folder / "phased.npy")
        self.assertEqual(list(samples.dtype.names), COLUMNS)
        self.assert_samples("phased", lambda name: samples[name])
        self.assertTrue(numpy.isnan(samples["response_ns"]).all())
        mapped = numpy.load(self.folder / "phased.npy", mmap_mode="r")
        self.assertEqual(len(mapped), len(samples))

    def test_csv_reads_samples(self):
        self.export("csv", "phased", "--output", "phased.csv")
        with open(self.folder / "phased.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual(list(rows[0]), COLUMNS)
        self.assert_samples("phased", lambda name: numpy.array([float(row[name]) for row in rows]))
        self.assertEqual({row["response_ns"] for row in rows}, {""})

    def test_pyarrow_reads_samples(self):
        self.export("parquet", "phased", "--output", "phased.parquet")
        table = pyarrow.parquet.read_table(self.folder / "phased.parquet")
        self.assertEqual(table.column_names, COLUMNS)
        self.assert_samples("phased", lambda name: table[name].to_numpy())
        self.assertEqual(table["response_ns"].null_count, len(table))
        types = [str(table.schema.field(name).type) for name in ("start_ns", "job", "op")]
        self.assertEqual(types, ["double", "uint32", "uint64"])

    def test_hdrhistogram_reads_the_log(self):
        for name, points in (("phased", 1), ("sweep", 3)):
            self.export("hlog", name, "--output", f"{name}.hlog")
            for number, point in enumerate(self.points[name], 1):
                reader = HistogramLogReader(str(self.folder / f"{name}.hlog"), HdrHistogram(1, 10**12, 3))
                histogram = None
                for _ in range(number):
                    histogram = reader.get_next_interval_histogram()
                latency = point["latency_ns"]
                self.assertEqual(histogram.get_total_count(), latency["n"])
                for percent in (50, 99):
                    ours = latency["percentiles"][str(percent)]
                    self.assertAlmostEqual(histogram.get_value_at_percentile(percent), ours, delta=2 + ours / 500)
            self.assertIsNone(reader.get_next_interval_histogram() if points == number else 1)

    def test_the_percentile_text_is_that_of_hdrhistogram(self):
        """Line for line what the other implementation prints for the same histogram, but for the exact figures at the end."""
        ours = self.export("hgrm", "phased").splitlines()
        self.export("hlog", "phased", "--output", "one.hlog")
        reader = HistogramLogReader(str(self.folder / "one.hlog"), HdrHistogram(1, 10**12, 3))
        histogram = reader.get_next_interval_histogram()
        with open(self.folder / "theirs.hgrm", "wb") as file:
            histogram.output_percentile_distribution(file, 1.0)
        theirs = (self.folder / "theirs.hgrm").read_text().splitlines()
        cells = lambda lines: [line.split() for line in lines if line.strip() and line[0] != "#"]
        self.assertEqual(cells(ours)[0], cells(theirs)[0])
        rows = [[list(map(float, row)) for row in cells(lines)[1:]] for lines in (ours, theirs)]
        reached = [{row[2]: row[0] for row in of} for of in rows]
        common = set(reached[0]) & set(reached[1])
        self.assertGreater(len(common), 5)
        for count in common:
            self.assertAlmostEqual(reached[0][count], reached[1][count], delta=1 + reached[1][count] / 500)
        self.assertEqual(rows[0][-1][1:], rows[1][-1][1:])

    def test_fios_script_reads_the_histograms(self):
        self.export("fio-json+", "sweep", "--output", "plus.json")
        run(self.folder, "fio_jsonplus_clat2csv", "plus.json", "plus.csv")
        said = run(self.folder, "fio_jsonplus_clat2csv", "plus.json", "plus.csv", "--validate")
        self.assertEqual(said.count("validated"), 3)
        with open(self.folder / "plus_job0.csv", newline="") as file:
            rows = list(csv.DictReader(file, skipinitialspace=True))
        self.assertEqual(int(rows[-1]["read_lat_ns_cumulative"]), self.latency("sweep")["n"])

    def test_fio_json_has_the_keys_of_fio(self):
        """What fio writes for the same measurement has no key that ours lacks, but for those that say nothing here."""
        theirs = json.loads(run(self.folder, "fio", "--name=x", "--filename=file", "--rw=randread", "--bs=4k",
                                "--ioengine=libaio", "--size=4M", "--number_ios=1000", "--output-format=json"))
        ours = json.loads(self.export("fio-json", "phased"))
        left_out = {
            "eta", "sync", "job_runtime", "latency_target", "latency_percentile", "latency_window", "bw_agg", "bw_samples",
            "iops_samples",
        }
        job, of_fio = ours["jobs"][0], theirs["jobs"][0]
        self.assertEqual(set(of_fio) - set(job), left_out & set(of_fio))
        self.assertEqual(set(of_fio["read"]) - set(job["read"]), left_out & set(of_fio["read"]))
        for key in ("iodepth_level", "iodepth_submit", "iodepth_complete", "latency_ns", "latency_us", "latency_ms"):
            self.assertEqual(set(of_fio[key]), set(job[key]), key)
            self.assertTrue(key.startswith("latency") or abs(sum(job[key].values()) - 100) < 1e-6)
        everything = sum(sum(job[f"latency_{unit}s"].values()) for unit in "num")
        self.assertAlmostEqual(everything, 100, places=6)
        self.assertEqual(job["read"]["lat_ns"]["N"], 5000)

    def fio_plot(self, *options):
        command = [Path(sys.executable).parent / "fio-plot", "-T", "lat-probe", "-r", "randread", *options]
        run(self.folder, *command)

    def test_fio_plot_draws_the_json(self):
        folder = self.folder / "plots"
        folder.mkdir()
        for number in range(1, 4):
            depth = self.points["sweep"][number - 1]["config"]["qd"]
            self.export("fio-json", "sweep", "--point", str(number), "--output", f"plots/randread-{depth}-1.json")
        self.fio_plot("-i", "plots", "-l", "-d", "1", "2", "4", "-n", "1", "-o", "bars.png")
        self.fio_plot("-i", "plots", "-H", "-d", "2", "-n", "1", "-o", "histogram.png")
        for name in ("bars.png", "histogram.png"):
            self.assertTrue((self.folder / name).read_bytes().startswith(b"\x89PNG"), name)

    def test_fio_plot_draws_the_logs(self):
        folder = self.folder / "logs"
        folder.mkdir()
        self.export("fio-log", "deep", "--output", "logs/randread-iodepth-4-numjobs-1")
        self.assertEqual(len(list(folder.iterdir())), 3)
        self.fio_plot("-i", "logs", "-g", "-t", "lat", "-d", "4", "-n", "1", "-o", "line.png")
        self.assertTrue((self.folder / "line.png").read_bytes().startswith(b"\x89PNG"))

    def test_both_parsers_of_prometheus_read_the_metrics(self):
        text = self.export("openmetrics", "sweep")
        for families in (parser.text_string_to_metric_families, openmetrics_parser.text_string_to_metric_families):
            samples = [sample for family in families(text) for sample in family.samples]
            medians = [
                sample for sample in samples
                if sample.name == "lat_probe_latency_seconds" and sample.labels.get("quantile") == "0.5"
            ]
            self.assertEqual([sample.labels["qd"] for sample in medians], ["1", "2", "4"])
            for sample, point in zip(medians, self.points["sweep"]):
                self.assertAlmostEqual(sample.value * 1e9, point["latency_ns"]["percentiles"]["50"], places=3)
                self.assertEqual(sample.labels["label"], 'sweep "1\\2"')
                self.assertEqual(sample.labels["target"], "file")
            counts = [sample.value for sample in samples if sample.name == "lat_probe_latency_seconds_count"]
            self.assertEqual(counts, [5000, 5000, 5000])
        self.assertIn("# EOF\n", text)

    def test_the_table_of_perftest_has_its_columns(self):
        head, *rows = self.export("perftest", "sweep").splitlines()
        self.assertEqual(len(rows), 3)
        for row, point in zip(rows, self.points["sweep"]):
            latency = point["latency_ns"]
            values = [latency["min"], latency["max"], latency["percentiles"]["50"], latency["mean"], latency["stddev"],
                      latency["percentiles"]["99"], latency["percentiles"]["99.9"]]
            shown = row.split()
            self.assertEqual(shown[:2], ["4096", "5000"])
            for text, value in zip(shown[2:], values):
                self.assertAlmostEqual(float(text), value / 1e3, delta=0.0051)


if __name__ == "__main__":
    unittest.main()
