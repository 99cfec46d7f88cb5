"""Draws results of lat-probe: `scripts/plot` runs it and has its help."""

import argparse
import os
import signal
import sys

import style  # Before Matplotlib: it says where that may write.
import distribution
import frames
import saving
import sweeps
from faults import Refused, Unwritten
from reading import read_files
from shift import shift
from timeline import has_timeline, timeline

DISTRIBUTIONS = {
    "cdf": (distribution.cdf, "Cumulative distribution"),
    "ccdf": (distribution.ccdf, "Tail distribution"),
    "percentiles": (distribution.percentiles, "Latency by percentile"),
    "histogram": (distribution.histogram, "Histogram"),
}
SWEEPS = {
    "depth": (sweeps.depth, "qd", "two queue depths at least: --qd 1,2,4"),
    "sizes": (sweeps.sizes, "bs_bytes", "two block sizes at least: --bs 512,4k,64k"),
}
KINDS = [*DISTRIBUTIONS, "timeline", *SWEEPS, "shift"]


class Parser(argparse.ArgumentParser):
    def error(self, message):
        raise Refused(f"{message}; scripts/plot --help tells more")


def positive(text):
    number = int(text)
    if number < 1:
        raise ValueError
    return number


positive.__name__ = "number from 1 on"


def parse(words):
    parser = Parser(prog="plot", add_help=False, allow_abbrev=False)
    parser.add_argument("kind", choices=[*KINDS, "all"], metavar="KIND")
    parser.add_argument("files", nargs="+", metavar="FILE")
    parser.add_argument("-o", "--output")
    parser.add_argument("--format")
    parser.add_argument("--point", type=positive)
    options = parser.parse_intermixed_args(words)
    options.formats = list(dict.fromkeys(options.format.split(","))) if options.format is not None else []
    for name in options.formats:
        if name not in saving.FORMATS:
            raise Refused(f"--format: {name!r} is none of {', '.join(saving.FORMATS)}")
    if options.output == "":
        raise Refused("-o: an empty name; name a file or a folder")
    return options


def drawn(kind, all_series, comparisons):
    """The figure, or why these files do not give it."""
    if kind == "shift":
        return drawn_shift(comparisons)
    if not all_series:
        raise Refused(f"a comparison has no {kind}; name results or files of samples, or draw `shift`")
    if kind in SWEEPS:
        return drawn_sweep(kind, all_series)
    most = style.MOST_PANELS if kind == "timeline" else style.MOST_SERIES
    filled = [series for series in all_series if series.n > 0]
    if len(filled) > most:
        raise Refused(f"{len(filled)} points are too many for one {kind}, which holds {most}; choose one with --point")
    draw, words = DISTRIBUTIONS.get(kind, (timeline, "Latency over time"))
    if not filled:
        return frames.empty(kind, all_series, words)
    note_left_out(kind, all_series, filled, "it has no samples")
    if kind == "timeline":
        timed = [series for series in filled if has_timeline(series)]
        if not timed:
            raise Refused("timeline: these results have neither windows nor outliers; name a file of samples (--samples)")
        note_left_out(kind, filled, timed, "it has neither windows nor outliers")
        filled = timed
    return draw(filled)


def drawn_sweep(kind, all_series):
    draw, fact, remedy = SWEEPS[kind]
    found = sweeps.groups(all_series, fact)
    if not found:
        only_samples = not any(series.is_result for series in all_series)
        why = "samples do not say it; name the results" if only_samples else f"it takes results of {remedy}"
        raise Refused(f"{kind}: {why}")
    if len(found) > style.MOST_SERIES:
        raise Refused(f"{kind}: {len(found)} groups are too many for one figure, which holds {style.MOST_SERIES}; name fewer files")
    note_left_out(kind, all_series, [series for group in found for series in group], "nothing else differs in that alone")
    return draw(all_series)


def drawn_shift(comparisons):
    if not comparisons:
        raise Refused("shift: it takes a comparison: lat-probe compare A='a*.json' B='b*.json' --output comparison.json, "
                      "or lat-probe ab --comparison")
    if len(comparisons) > 1:
        raise Refused(f"shift: {comparisons[1].file} is a second comparison; name one")
    points = comparisons[0].points
    if not points:
        raise Refused(f"{comparisons[0].file}: its sides have no point in common; compare results of the same points")
    if len(points) > style.MOST_PANELS:
        raise Refused(f"shift: {len(points)} points are too many for one figure, which holds {style.MOST_PANELS}; "
                      "choose one with --point")
    return shift(comparisons[0])


def note_left_out(kind, all_series, kept, why):
    for series in all_series:
        if not any(series is each for each in kept):
            say(f"{kind}: {series.facts.file}, point {series.facts.point} is left out: {why}")


def say(text):
    print(f"plot: {frames.shortened(text, 600)}", file=sys.stderr)


def draw_all(options):
    kinds = KINDS if options.kind == "all" else [options.kind]
    output = options.output or ("plots" if options.kind == "all" else ".")
    targets = saving.targets(kinds, output, options.formats)
    all_series, comparisons = read_files(options.files, options.point)
    if options.kind not in ("all", "shift") and comparisons and all_series:
        raise Refused(f"{comparisons[0].file}: a comparison has no {options.kind}; leave it out, or draw `shift`")
    made = 0
    for kind in kinds:
        try:
            figure = drawn(kind, all_series, comparisons)
        except Refused as why:
            if options.kind != "all":
                raise
            say(f"{kind} is left out: {str(why).removeprefix(f'{kind}: ')}")
            continue
        saving.save(figure, targets[kind])
        frames.close(figure)
        made += 1
    if not made:
        raise Refused("these files allow no figure; name results, samples or a comparison")


def main(words):
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    # The name of a file may be any bytes.
    sys.stdout.reconfigure(errors="surrogateescape")
    try:
        draw_all(parse(words))
        sys.stdout.flush()
    except (Refused, Unwritten) as fault:
        say(str(fault))
        return fault.code
    except MemoryError:
        say("these files do not fit into memory; draw one point at a time, --point")
        return 1
    except OSError as error:
        # All files have their own faults: what is left is stdout.
        sys.stdout = open(os.devnull, "w")
        say(f"stdout: {error.strerror}; the figures are written")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
