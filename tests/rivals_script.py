#!/usr/bin/env python3
"""Tests of scripts/bench rivals: reading what the rivals print (tests/rivals has real output), the arithmetic, the paper, and
one short run on this host. No test depends on how fast anything is. Needs a built lat-probe; the run is skipped without fio.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "scripts/bench.d"))
from contests import Comparison, Contest  # noqa: E402
from figures import compare, interval_ranks, medians, paired_ratio  # noqa: E402
from paper import markdown  # noqa: E402
from record import SCHEMA, aims, losses, part, row  # noqa: E402
from tools import Failed, Unreadable, read_fio, read_ioping, read_lat_probe, read_perftest, read_qperf  # noqa: E402
from turns import Contender, measure, run, take_turns  # noqa: E402

BUILT = [name for name in ("target/debug/lat-probe", "target/release/lat-probe") if (ROOT / name).exists()]


def captured(name):
    return (ROOT / "tests/rivals" / name).read_text(encoding="utf-8")


class Reading(unittest.TestCase):
    def test_fio_gives_both_medians_and_its_run_time_by_commands(self):
        figures = read_fio("read", 204_800)(captured("fio.json"))
        self.assertEqual((figures["clat_p50_ns"], figures["lat_p50_ns"]), (422, 1320))
        self.assertAlmostEqual(figures["period_ns"], 409e6 / 204_800)

    def test_fio_without_lat_percentiles_has_no_lat_p50(self):
        self.assertIsNone(read_fio("read", 204_800)(captured("fio.json").replace("lat_percentiles", "x"))["lat_p50_ns"])

    def test_fio_that_stopped_short_has_failed(self):
        with self.assertRaisesRegex(Failed, "204800 of 204801 commands"):
            read_fio("read", 204_801)(captured("fio.json"))

    def test_a_warning_before_the_json_of_fio_is_passed_over(self):
        self.assertEqual(read_fio("read", 204_800)("fio: a {warning}\n" + captured("fio.json"))["clat_p50_ns"], 422)

    def test_ioping_gives_its_mean_and_its_total_time_by_requests(self):
        self.assertEqual(read_ioping(captured("ioping.json")), {"mean_ns": 629, "period_ns": 1_335_672 / 2000})

    def test_perftest_gives_nanoseconds_and_a_sample_is_its_period(self):
        self.assertEqual(read_perftest(1)(captured("perftest.txt")),
                         {"p50_ns": 26_810, "mean_ns": 34_310, "period_ns": 34_310})

    def test_two_half_round_trips_are_a_period(self):
        self.assertEqual(read_perftest(2)(captured("perftest.txt"))["period_ns"], 68_620)
        self.assertAlmostEqual(read_qperf(2)(captured("qperf.txt"))["period_ns"], 65_110.6)

    def test_qperf_gives_a_mean(self):
        self.assertEqual(read_qperf(1)(captured("qperf.txt"))["mean_ns"], 32_555.3)

    def test_output_that_cannot_be_read_is_an_error_that_names_the_tool(self):
        readers = {"fio": read_fio("read", 1), "ioping": read_ioping, "perftest": read_perftest(1), "qperf": read_qperf(1),
                   "lat-probe": read_lat_probe}
        for tool, read in readers.items():
            for text in ("", "no figures", "{\n}", '[{\n"stat": 1}]'):
                with self.subTest(tool=tool, text=text), self.assertRaisesRegex(Unreadable, f"^{tool}: "):
                    read(text)


class Arithmetic(unittest.TestCase):
    def test_five_rounds_need_all_of_them_for_ninety_percent(self):
        self.assertEqual(interval_ranks(5), (0, 0.9375))

    def test_more_rounds_leave_out_extremes(self):
        left_out, coverage = interval_ranks(11)
        self.assertEqual(left_out, 2)
        self.assertAlmostEqual(coverage, 1 - 2 * (1 + 11 + 55) / 2048)

    def test_a_ratio_is_paired_within_its_round(self):
        ratio = paired_ratio([10, 100, 1000, 30, 20], [20, 200, 2000, 60, 40])
        self.assertEqual((ratio["low"], ratio["median"], ratio["high"]), (0.5, 0.5, 0.5))

    def test_verdicts(self):
        theirs = [100, 101, 99, 100, 100]
        for ours, expected in (([90] * 5, "lower"), ([110] * 5, "higher"), ([90, 110, 90, 110, 90], "within")):
            self.assertEqual(compare(ours, theirs, {})["verdict"], expected)

    def test_a_difference_below_the_rivals_resolution_is_none(self):
        self.assertEqual(compare([110] * 5, [100] * 5, {"ns": 10})["verdict"], "within")
        self.assertEqual(compare([111] * 5, [100] * 5, {"ns": 10})["verdict"], "higher")
        self.assertEqual(compare([100.7] * 5, [100] * 5, {"relative": 1 / 128})["verdict"], "within")

    def test_what_a_tool_does_not_offer_is_not_compared(self):
        self.assertIsNone(compare([1] * 5, [None] * 5, {}))
        self.assertIsNone(compare([1] * 5, [0] * 5, {}))
        self.assertIsNone(compare([1] * 5, [1] * 4, {}))
        self.assertEqual(medians([{"a": 1, "b": None}, {"a": 3, "b": 2}]), {"a": 2})


def contender(name, tool="fio", ours=False, values=(), status="measured", reason=None):
    rounds = [{"p50_ns": value, "mean_ns": value, "period_ns": value} for value in values]
    return Contender(name, tool, [name], None, f"definition of {name}", ours=ours, rounds=rounds, status=status, reason=reason)


class Papers(unittest.TestCase):
    def record(self):
        ours = contender("lat-probe", "lat-probe", True, [100] * 5)
        rivals = [contender("fio", values=[200] * 5), contender("fast", values=[50] * 5),
                  contender("ioping", "ioping", status="not installed", reason="ioping is not installed"),
                  contender("qperf", "qperf", status="failed", reason="exit code 1: no luck")]
        contest = Contest("null", "nothing", [ours, *rivals], [
            Comparison("lat-probe", one.name, "p50_ns", "p50_ns", same_span=one.name != "fast", reason="it cheats")
            for one in rivals])
        host = {"kernel": "1.2", "cpu_model": "a CPU", "hypervisor": None, "cpus": 2}
        facts = {"started_at": "now", "commands": 7, "tools": {"fio": "3"}, "host": host, "load_before": 0, "load_after": 0}
        return {"schema": SCHEMA, "parts": {"host": part("host", facts, 5, [contest])}}

    def test_a_row_where_a_rival_is_lower_is_named_with_its_reason(self):
        text = markdown(self.record())
        losing = text.split("### Where lat-probe loses")[1].split("###")[0]
        self.assertIn("p50 of fast is lower, 50.0 ns to 100 ns, ratio 2.000: it cheats.", losing)
        self.assertNotIn("fio", losing)
        same_span, other_span = losing.split("Lower, but of another span")
        self.assertIn("period of fast is lower", same_span)
        self.assertIn("p50 of fast is lower", other_span)

    def test_missing_and_failed_rivals_are_named(self):
        text = markdown(self.record())
        self.assertIn("ioping: not installed: ioping is not installed", text)
        self.assertIn("qperf: failed: exit code 1: no luck", text)
        self.assertIn("| ioping | not installed |", text)

    def test_every_definition_is_printed(self):
        for name in ("lat-probe", "fio", "fast", "ioping"):
            self.assertIn(f"definition of {name}", markdown(self.record()))

    def test_the_eighth_of_fio_is_judged_by_the_period(self):
        rows = self.record()["parts"]["host"]["rows"]
        self.assertEqual([(aim["found"], aim["met"]) for aim in aims(rows)], [(0.5, False), ("0 of 1 rows above", True)])
        self.assertEqual([(one["rival"], what) for one, what in losses(rows)], [("fast", "latency"), ("fast", "period")])

    def test_nothing_measured_decides_nothing(self):
        ours = contender("lat-probe", "lat-probe", True, [100] * 5)
        rival = contender("fio", status="failed", reason="no")
        one = row(Contest("null", "nothing", [ours, rival], []), Comparison("lat-probe", "fio", "p50_ns", "p50_ns"))
        self.assertEqual([aim["met"] for aim in aims([one])], [None, None])


class Turns(unittest.TestCase):
    def test_a_run_past_its_deadline_is_ended_and_named(self):
        with self.assertRaisesRegex(Failed, "not done after 0.2 s: waiting"):
            run(["sh", "-c", "echo waiting >&2; sleep 60"], 0.2)

    def test_a_failure_has_its_exit_code_and_text(self):
        with self.assertRaisesRegex(Failed, "exit code 3: why"):
            run(["sh", "-c", "echo why >&2; exit 3"], 5)
        with self.assertRaisesRegex(Failed, "no-such-tool: No such file"):
            run(["no-such-tool"], 5)

    def test_a_server_that_ends_is_a_failure_with_its_text(self):
        one = contender("client")
        one.server, one.listens = ["sh", "-c", "echo port {port} is taken"], lambda port: False
        with self.assertRaisesRegex(Failed, "its server does not listen: port 77 is taken"):
            measure(one, 77)

    def test_order_alternates_and_a_rival_that_fails_is_out(self):
        def says(name):
            one = contender(name, "sh", ours=name == "ours")
            one.command = ["sh", "-c", f"echo {name}"]
            one.read = lambda text: seen.append(text.strip()) or {"p50_ns": 1}
            return one
        seen, broken = [], contender("broken", "sh")
        broken.command = ["sh", "-c", "exit 1"]
        contest = Contest("one", "one", [says("ours"), broken, says("rival")], [])
        take_turns([contest], 3, 1)
        self.assertEqual(seen, ["ours", "rival", "rival", "ours", "ours", "rival"])
        self.assertEqual((broken.status, broken.reason.split(":")[0]), ("failed", "exit code 1"))

    def test_an_engine_that_this_machine_lacks_is_out_and_its_rows_say_so(self):
        lacking, rival = contender("ours", "sh", ours=True), contender("rival", "sh")
        lacking.command, rival.command = ["sh", "-c", "echo no io_uring >&2; exit 77"], ["true"]
        rival.read = lambda text: {"p50_ns": 1, "period_ns": 1}
        contest = Contest("one", "one", [lacking, rival], [])
        take_turns([contest], 2, 1)
        one = row(contest, Comparison("ours", "rival", "p50_ns", "p50_ns"))
        self.assertEqual((one["status"], one["reason"], one["latency"]), ("failed", "exit code 77: no io_uring", None))

    def test_our_own_failure_ends_the_run(self):
        broken = contender("ours", "sh", ours=True)
        broken.command = ["sh", "-c", "exit 1"]
        with self.assertRaisesRegex(Failed, "ours: exit code 1"):
            take_turns([Contest("one", "one", [broken], [])], 1, 1)


def bench(output, *options, path=None):
    command = [sys.executable, "-B", str(ROOT / "scripts/bench.d/rivals.py"), *options, "--output", str(output), "--lat-probe",
               BUILT[0]]
    environment = {**os.environ, **({"PATH": path} if path else {})}
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=environment, timeout=120,
                          check=False)


@unittest.skipUnless(BUILT and shutil.which("fio"), "needs a built lat-probe and fio")
class OnThisHost(unittest.TestCase):
    def test_a_short_run_without_ioping_writes_every_row(self):
        with tempfile.TemporaryDirectory() as folder:
            tools, output = Path(folder) / "bin", Path(folder) / "out"
            tools.mkdir()
            for tool in ("fio", "taskset"):
                if shutil.which(tool):
                    (tools / tool).symlink_to(shutil.which(tool))
            done = bench(output, "host", "--commands", "300", path=str(tools))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.check((output / "rivals.json").read_text(encoding="utf-8"), (output / "rivals.md").read_text(encoding="utf-8"))
            self.assertEqual(sorted(path.name for path in output.iterdir()), ["rivals.json", "rivals.md"])

    def check(self, text, paper):
        record = json.loads(text)
        self.assertEqual(record["schema"], SCHEMA)
        self.assertFalse(str(ROOT) in text + paper, "the record says where this tree is")
        host = record["parts"]["host"]
        self.assertEqual((host["rounds"], host["tools"]["ioping"]), (5, None))
        self.assertTrue({"kernel", "cpu_model", "hypervisor"} <= host["host"].keys())
        names = {contest["name"] for contest in host["contests"]}
        self.assertIn("null", names)
        self.assertIn("psync-tmpfs", names)
        for row_record in host["rows"]:
            expected = "not installed" if row_record["tool"] == "ioping" else "measured"
            self.assertEqual((row_record["status"], row_record["latency"] is None), (expected, expected != "measured"), row_record)
        for contest in host["contests"]:
            for one in contest["contenders"]:
                self.assertTrue(one["definition"] and one["command"])
                self.assertEqual(len(one["rounds"]), 5 if one["status"] == "measured" else 0)
        for heading in ("## On the host", "### Where lat-probe loses", "### What the numbers are", "not installed"):
            self.assertIn(heading, paper)

    def test_wrong_usage_says_what_is_right(self):
        for options, said in ((["--rounds", "4"], "at least 5"), (["moon"], "host"), (["--commands", "1"], "100 to 10,000,000")):
            done = bench("unused", *options)
            self.assertEqual(done.returncode, 2)
            self.assertIn(said, done.stderr)

    def test_a_record_of_another_version_is_not_overwritten(self):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "rivals.json").write_text('{"schema": "other/9"}', encoding="utf-8")
            done = bench(folder, "host", "--commands", "100")
            self.assertEqual(done.returncode, 1)
            self.assertIn("other/9", done.stderr)


if __name__ == "__main__":
    unittest.main()
