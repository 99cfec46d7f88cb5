#!/usr/bin/env python3
"""Prints a row for each point of a result of lat-probe. It needs nothing but Python 3.

    python3 read.py result.json
"""
import json
import sys

KNOWN = "lat-probe.result/1"


def refuse(why):
    print(f"read.py: {why}", file=sys.stderr)
    sys.exit(2)


def load(path):
    try:
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
    except (OSError, ValueError, RecursionError) as error:
        refuse(f"{path}: {error}")
    # First of all: another version may mean something else by the same keys.
    schema = get(document, "schema")
    if schema is None:
        refuse(f"{path}: it has no `schema`, so it is no result of lat-probe")
    if schema != KNOWN:
        refuse(f"{path}: its `schema` is {schema}; this script reads {KNOWN}")
    return document


def get(value, *keys):
    """The value at a place. Null and a key that an earlier version did not write are both None; others are not looked at."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def instrument_of(document, index):
    """A result that was taken up again has an instrument for each call; the document's is that of the last one."""
    sessions = get(document, "sweep", "sessions") or []
    began = [session for session in sessions if get(session, "first_point") <= index]
    return get(began[-1] if began else document, "instrument")


def ns(value):
    return "-" if value is None else f"{value:.3f}"


def count(value):
    return "-" if value is None else str(value)


def main():
    if len(sys.argv) != 2:
        refuse("it takes one file: read.py result.json")
    document = load(sys.argv[1])
    codes = {get(warning, "code") for warning in get(document, "warnings") or []}
    warnings = ",".join(sorted(codes)) or "none"
    rows = [["engine", "bs_bytes", "qd", "n", "p50_ns", "p99_ns", "max_ns", "floor_p50_ns", "partial", "warnings"]]
    for index, point in enumerate(get(document, "points") or []):
        latency, percentiles = get(point, "latency_ns"), get(point, "latency_ns", "percentiles")
        rows.append([
            get(point, "config", "engine"),
            count(get(point, "config", "bs_bytes")),
            count(get(point, "config", "qd")),
            count(get(latency, "n")),
            ns(get(percentiles, "50")),
            ns(get(percentiles, "99")),
            ns(get(latency, "max")),
            ns(get(instrument_of(document, index), "floor_ns", "percentiles", "50")),
            "yes" if get(point, "partial") else "no",
            warnings,
        ])
    for row in rows:
        print("\t".join(row))


main()
