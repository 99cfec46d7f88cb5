"""Arithmetic of the comparison with rivals: medians, paired ratios with an interval, verdicts. Pure.

A round gives one figure of each contender. Samples within a run depend on each other, so the round is the unit.
"""

from math import comb
from statistics import median

MINIMUM_ROUNDS = 5
WANTED_COVERAGE = 0.9


def interval_ranks(rounds):
    """How many values to leave out at each end so that the rest still covers the median, and with what probability.

    Distribution-free: the k-th smallest and k-th largest of n independent values enclose the median with
    probability 1 - 2·P(Bin(n, 1/2) < k) (David and Nagaraja, Order Statistics, 7.1).
    """
    def coverage(left_out):
        return 1 - 2 * sum(comb(rounds, below) for below in range(left_out + 1)) / 2**rounds

    left_out = 0
    while coverage(left_out + 1) >= WANTED_COVERAGE:
        left_out += 1
    return left_out, coverage(left_out)


def paired_ratio(ours, theirs):
    """Median of the rounds' own ratios, with its interval. Pairing takes out what touches a whole round."""
    ratios = sorted(our / their for our, their in zip(ours, theirs, strict=True))
    left_out, coverage = interval_ranks(len(ratios))
    return {"median": median(ratios), "low": ratios[left_out], "high": ratios[-1 - left_out], "coverage": coverage}


def verdict(ours, theirs, ratio, resolution):
    """`lower` or `higher` if the interval excludes 1 and the difference can be seen in the rival's resolution."""
    step = max(resolution.get("ns", 0), resolution.get("relative", 0) * median(theirs))
    if abs(median(ours) - median(theirs)) <= step:
        return "within"
    if ratio["high"] < 1:
        return "lower"
    return "higher" if ratio["low"] > 1 else "within"


def compare(ours, theirs, resolution):
    """A comparison of one figure of two contenders over all rounds, or None where it cannot be had."""
    if not ours or len(ours) != len(theirs) or None in ours or None in theirs or min(theirs) <= 0:
        return None
    ratio = paired_ratio(ours, theirs)
    return {"ours": median(ours), "theirs": median(theirs), "ratio": ratio,
            "verdict": verdict(ours, theirs, ratio, resolution)}


def medians(rounds):
    """The median over rounds of every figure that all rounds have."""
    names = rounds[0] if rounds else {}
    columns = {name: [figures[name] for figures in rounds] for name in names}
    return {name: median(values) for name, values in columns.items() if None not in values}
