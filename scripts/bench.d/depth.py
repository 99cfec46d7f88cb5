"""Many commands in flight, and very long runs: time and memory of whole processes, in turn with fio where it is there.

Prints the figures and leaves them in target/bench/depth.json. Needs a file in memory, which it makes and removes."""

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LAT_PROBE = ROOT / "target/release/lat-probe"
DEPTH, BS_BYTES, COMMANDS, ROUNDS = 20_000, 512, 200_000, 7
LONG, SHORT = 1_000_000_000, 100_000_000


def peak_bytes(command):
    """Runs a command; its standard output and the most memory that it had resident."""
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.PIPE)
        said = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            sys.exit(f"bench: {command[0]} failed: {said.decode(errors='replace')}")
        output.seek(0)
        return output.read(), usage.ru_maxrss * 1024


def lat_probe(*options):
    output, peak = peak_bytes([LAT_PROBE, *options, "--format", "json"])
    return json.loads(output)["points"][0], peak


def null_by_depth():
    """Time from one command to the next of the engine that does nothing, at depth one and deep, in turn."""
    periods = {1: [], DEPTH: []}
    for _ in range(ROUNDS):
        for depth, taken in periods.items():
            point, _ = lat_probe("--engine", "null", "--qd", str(depth), "--count", "5000000")
            taken.append(point["throughput"]["period_ns"])
    medians = {depth: statistics.median(taken) for depth, taken in periods.items()}
    ratio = medians[DEPTH] / medians[1]
    print(f"null          {medians[1]:.1f} ns a command at depth 1, {medians[DEPTH]:.1f} at {DEPTH}: ratio {ratio:.2f}"
          " (aim: at most 1.5)")
    return {"period_ns": {str(depth): taken for depth, taken in periods.items()}, "ratio": ratio, "aim": 1.5}


def slope(peak):
    """Bytes of resident memory for each command that is outstanding: the median over rounds."""
    each = [(peak(DEPTH) - peak(1)) / (DEPTH - 1) for _ in range(ROUNDS)]
    return statistics.median(each), each


def memory_by_depth(file):
    """Resident memory for each outstanding command of 512 bytes, ours and fio's."""
    result = {}
    fio = shutil.which("fio")
    for engine, fios in [("libaio", "libaio"), ("io-uring", "io_uring")]:
        options = ["--engine", engine, "--target", file, "--buffered", "--bs", str(BS_BYTES)]
        # The samples are as many at either depth; the warm-up is not kept.
        own, owns = slope(lambda depth: lat_probe(*options, "--qd", str(depth), "--count", str(COMMANDS))[1])
        point, _ = lat_probe(*options, "--qd", str(DEPTH), "--count", str(COMMANDS))
        said = point["memory"]["bytes_per_outstanding"]
        line = f"{engine:13} {own:.0f} bytes resident for each of {DEPTH} commands of {BS_BYTES} (it says {said}; aim: {BS_BYTES + 256})"
        result[engine] = {"bytes": owns, "median_bytes": own, "said_bytes": said, "aim_bytes": BS_BYTES + 256}
        if fio:
            job = [fio, "--name=j", f"--ioengine={fios}", f"--filename={file}", f"--bs={BS_BYTES}", "--rw=read",
                   "--thread", f"--number_ios={COMMANDS}", "--size=64m"]
            theirs, each = slope(lambda depth: peak_bytes([*job, f"--iodepth={depth}"])[1])
            line += f"; fio {theirs:.0f}"
            result[engine] |= {"fio_bytes": each, "fio_median_bytes": theirs}
        print(line)
    return result


def long_run():
    """Memory of runs that are too long to keep every sample: ten times as many commands take no more."""
    point, short = lat_probe("--engine", "null", "--count", str(SHORT))
    short_n = point["latency_ns"]["n"]
    point, peak = lat_probe("--engine", "null", "--count", str(LONG))
    n, counted = point["latency_ns"]["n"], sum(bucket[2] for bucket in point["histogram"]["buckets"])
    if (short_n, n, counted) != (SHORT, LONG, LONG):
        sys.exit(f"bench: {n} commands of {LONG} are counted, {counted} are in the histogram")
    period = point["throughput"]["period_ns"]
    print(f"long runs     {LONG:,} commands in {peak / 2**20:.0f} MiB ({SHORT:,} in {short / 2**20:.0f}), {period:.1f} ns a command")
    return {"commands": LONG, "peak_bytes": peak, "short_commands": SHORT, "short_peak_bytes": short, "period_ns": period}


def main():
    with tempfile.NamedTemporaryFile(dir="/dev/shm", prefix="lat-probe-bench.") as file:
        file.truncate(64 << 20)
        result = {"bench": "depth", "null": null_by_depth(), "memory": memory_by_depth(file.name), "long": long_run()}
    folder = ROOT / "target/bench"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "depth.json").write_text(json.dumps(result, indent=2) + "\n")
    print("written       target/bench/depth.json")


if __name__ == "__main__":
    main()
