"""What --watch costs a measurement: the same runs with and without it, in turn.

Prints the figures and leaves them in target/bench/watch.json."""

import json
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LAT_PROBE = ROOT / "target/release/lat-probe"
ROUNDS = 9
RUNS = {
    "null": ["--engine", "null", "--count", "40000000"],
    "spin 10 µs": ["--engine", "spin", "--delay", "10us", "--count", "300000"],
}


def figures(options):
    command = [LAT_PROBE, *options, "--format", "json"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"bench: {' '.join(map(str, command))} failed: {done.stderr}")
    point = json.loads(done.stdout)["points"][0]
    percentiles = point["latency_ns"]["percentiles"]
    return {
        "period_ns": point["throughput"]["period_ns"],
        **{f"p{name}_ns": percentiles[name] for name in ("50", "99", "99.9")},
    }


def compared(options):
    rounds = {"without": [], "with": []}
    for number in range(ROUNDS):
        sides = list(rounds)
        for side in sides if number % 2 == 0 else reversed(sides):
            rounds[side].append(figures(options + (["--watch"] if side == "with" else [])))
    result = {"rounds": rounds}
    for name in rounds["with"][0]:
        medians = {side: statistics.median(taken[name] for taken in rounds[side]) for side in rounds}
        ratios = [one[name] / other[name] for one, other in zip(rounds["with"], rounds["without"])]
        result[name] = {**medians, "ratio": statistics.median(ratios), "from": min(ratios), "to": max(ratios)}
    return result


def main():
    results = {}
    for name, options in RUNS.items():
        results[name] = result = compared(options)
        for figure, of in result.items():
            if figure != "rounds":
                print(f"{name:<12} {figure:<10} {of['without']:10.2f} without, {of['with']:10.2f} with --watch:"
                      f" ratio {of['ratio']:.3f} ({of['from']:.3f} to {of['to']:.3f})")
    folder = ROOT / "target/bench"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "watch.json").write_text(json.dumps(results, indent=2) + "\n")


main()
