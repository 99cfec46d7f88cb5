"""What each tool says, read into figures, and what its figures mean. Pure: text in, nanoseconds out."""

import json


class Unreadable(Exception):
    """The output of a tool is not what this script can read."""


class Failed(Exception):
    """A tool ended with an error, not in time, or short of what was asked. `code` is its exit code, if it has one."""

    def __init__(self, text, code=None):
        super().__init__(text)
        self.code = code


def numbers(tool, text, values):
    """Every value as a number, or an error that names the tool and shows what it said."""
    try:
        return {name: None if value is None else float(value()) for name, value in values.items()}
    except (KeyError, IndexError, TypeError, ValueError, ZeroDivisionError) as error:
        raise Unreadable(f"{tool}: cannot read its output ({error!r}): {' '.join(text.split())[:300]}") from error


def document(tool, text):
    """The JSON in the output, past the lines that some tools print before it."""
    starts = [place for place in (text.find("{\n"), text.find("[{"), text.find('{"')) if place >= 0]
    try:
        return json.loads(text[min(starts):])
    except ValueError as error:
        raise Unreadable(f"{tool}: its output holds no JSON: {' '.join(text.split())[:300]}") from error


def read_lat_probe(text):
    point = document("lat-probe", text)
    return numbers("lat-probe", text, {
        "p50_ns": lambda: point["points"][0]["latency_ns"]["percentiles"]["50"],
        "mean_ns": lambda: point["points"][0]["latency_ns"]["mean"],
        "period_ns": lambda: point["points"][0]["throughput"]["period_ns"]})


def read_fio(direction, commands):
    """fio's JSON. Its run time has whole milliseconds, so runs must be long. Its exit code may be 0 after an error."""
    def read(text):
        said = document("fio", text)

        def side():
            return said["jobs"][0][direction]
        done = numbers("fio", text, {"ios": lambda: side()["total_ios"]})["ios"]
        if done != commands:
            raise Failed(f"it completed {done:.0f} of {commands} commands")
        with_lat_p50 = '"lat_percentiles"' in text
        return numbers("fio", text, {
            "clat_p50_ns": lambda: side()["clat_ns"]["percentile"]["50.000000"],
            "clat_mean_ns": lambda: side()["clat_ns"]["mean"],
            "lat_p50_ns": (lambda: side()["lat_ns"]["percentile"]["50.000000"]) if with_lat_p50 else None,
            "lat_mean_ns": lambda: side()["lat_ns"]["mean"],
            "period_ns": lambda: side()["runtime"] * 1e6 / side()["total_ios"]})
    return read


def read_ioping(text):
    said = document("ioping", text)
    return numbers("ioping", text, {
        "mean_ns": lambda: said[0]["stat"]["avg"],
        "period_ns": lambda: said[0]["load"]["time"] / said[0]["load"]["count"]})


def read_perftest(commands_per_sample):
    """The row of figures: bytes, iterations, then microseconds: min, max, typical, average, …

    A sample is the time from post to post, or half of it in the ping-pong tools: then a period has two samples.
    """
    def read(text):
        rows = [line.split() for line in text.splitlines()]
        row = next((row for row in rows if len(row) == 9 and row[0].isdigit() and row[1].isdigit()), [])
        return numbers("perftest", text, {
            "p50_ns": lambda: float(row[4]) * 1000,
            "mean_ns": lambda: float(row[5]) * 1000,
            "period_ns": lambda: float(row[5]) * 1000 * commands_per_sample})
    return read


def read_qperf(messages_per_period):
    """The line `latency = N ns` that -uu makes."""
    def read(text):
        words = [line.split() for line in text.splitlines()]
        row = next((row for row in words if row[:2] == ["latency", "="] and row[3:] == ["ns"]), [])
        return numbers("qperf", text, {
            "mean_ns": lambda: row[2],
            "period_ns": lambda: float(row[2]) * messages_per_period})
    return read


LAT_PROBE = ("Two fenced reads of the time stamp counter around each command, from before the hand-over until the "
             "completion was seen; all samples, exact; after 1,000 commands of warm-up.")
LAT_PROBE_LAB = LAT_PROBE + " The counter is forced with `--clock tsc`, for perftest reads it too. The far end is `lat-probe serve`."
LAT_PROBE_HALF = LAT_PROBE_LAB + " Half of a round trip, by `--half-rtt`; the period is the whole one."
FIO = "fio: unfenced stamps, in a histogram whose buckets are up to 0.78 % wide. Period: run time, in whole ms, by commands. "
FIO_SYNC = FIO + "clat: from before the call to its return."
FIO_ASYNC = FIO + ("clat: from after the submitting call until fio took the completion. lat: from when fio had prepared the "
                   "command until then, so the submission is in it.")
FIO_RDMA = FIO_ASYNC + " It always sleeps until the completion channel wakes it."
IOPING = ("ioping: mean of the time from before the system call to its return, by clock_gettime. Period: its total time by "
          "its requests.")
IOPING_ASYNC = IOPING + " Here the two calls io_submit and io_getevents."
PERFTEST_FULL = ("perftest: one unfenced stamp per command; a sample is the time from one post to the next, so its loop is in "
                 "it. p50 is t_typical, the mean t_avg, both without the two largest samples; 10 ns resolution; no warm-up.")
PERFTEST_HALF = PERFTEST_FULL + " Half of a round trip of a ping-pong; the period here is twice its mean."
QPERF_READ = "qperf: run time by commands, one at a time, polled: a mean period."
QPERF_HALF = ("qperf: run time by messages, there and back, polled: half of a round trip, as a mean; the period here is twice "
              "that. ")
QPERF_WRITE = QPERF_HALF + "The far end polls memory."
QPERF_WRITE_IMM = QPERF_HALF + ("WRITE with immediate: both ends wait for the completions of their write and of the receive, "
                                "which our ping-pong does not do.")
QPERF_SEND = QPERF_HALF + "Both ends also wait for the completion of their own send."
