"""Arithmetic of the figures: distributions, quantiles, bins, thinning. Pure.

Quantiles are those of lat-probe: nearest rank, so each of them is a sample.
"""

from dataclasses import dataclass

import numpy

# More points of a curve than this cannot be told apart at any size of a page.
CURVE_POINTS = 4000
TIMELINE_BINS = 500
OUTLIER_POINTS = 2000


@dataclass(frozen=True)
class Distribution:
    """How many samples there are of each value; values ascend, counts are positive."""

    values_ns: numpy.ndarray
    counts: numpy.ndarray

    @classmethod
    def of_samples(cls, latencies_ns):
        return cls(*numpy.unique(latencies_ns, return_counts=True))

    @property
    def n(self):
        return int(self.counts.sum())

    @property
    def up_to(self):
        """How many samples are at most each value."""
        return numpy.cumsum(self.counts)

    @property
    def from_on(self):
        """How many samples are at least each value: all of them for the first, its own count for the last."""
        return self.n - self.up_to + self.counts

    def quantile(self, fraction):
        """The smallest value that at least this fraction of the samples do not exceed, or None of no samples."""
        if self.n == 0:
            return None
        # Fractions such as 0.999 are not exact in binary: rounding must not lift the rank by one.
        rank = max(1, int(numpy.ceil(fraction * self.n - 1e-6)))
        return float(self.values_ns[numpy.searchsorted(self.up_to, rank)])

    def supported_quantile(self, fraction):
        """None as well where n samples cannot support it, as in a result."""
        return self.quantile(fraction) if self.n * (1 - fraction) > 1 - 1e-6 else None


def curve_indices(distribution, points=CURVE_POINTS):
    """Which values to draw: all, or those that keep the shape on linear and on logarithmic axes. Both ends always stay."""
    size = len(distribution.values_ns)
    if size <= points:
        return numpy.arange(size)
    n, up_to, share = distribution.n, distribution.up_to, points // 3
    ranks = numpy.concatenate([
        numpy.linspace(1, n, share),
        n + 1 - numpy.geomspace(1, n, share),
    ])
    by_rank = numpy.searchsorted(up_to, ranks)
    values = distribution.values_ns
    by_value = numpy.searchsorted(values, numpy.geomspace(max(values[0], 1), values[-1], share))
    chosen = numpy.concatenate([[0, size - 1], by_rank, by_value])
    return numpy.unique(numpy.clip(chosen, 0, size - 1))


def histogram_edges(low_ns, high_ns, bins=80):
    """Edges of bins that are equally wide on a logarithmic axis, from the smallest to above the largest value."""
    # A bin narrower than 2 % would show the steps of the clock, not the distribution.
    ratio = max(1.02, (high_ns / low_ns) ** (1 / bins))
    steps = int(numpy.floor(numpy.log(high_ns / low_ns) / numpy.log(ratio) + 1e-9)) + 1
    return low_ns / ratio**0.5 * ratio ** numpy.arange(steps + 1)


@dataclass(frozen=True)
class Bins:
    """Samples by the time of their start, in bins of equal length; those without a sample are left out."""

    at_ns: numpy.ndarray
    low_ns: numpy.ndarray
    median_ns: numpy.ndarray
    high_ns: numpy.ndarray


def time_bins(starts_ns, latencies_ns, bins=TIMELINE_BINS):
    """Smallest, median and largest latency of each bin."""
    begin, end = starts_ns.min(), starts_ns.max()
    width = (end - begin) / bins or 1.0
    place = numpy.minimum(((starts_ns - begin) / width).astype(numpy.int64), bins - 1)
    order = numpy.lexsort((latencies_ns, place))
    filled, first, counts = numpy.unique(place[order], return_index=True, return_counts=True)
    ordered = latencies_ns[order]
    return Bins(
        at_ns=begin + (filled + 0.5) * width,
        low_ns=ordered[first],
        median_ns=ordered[first + (counts - 1) // 2],
        high_ns=ordered[first + counts - 1],
    )


def outlier_indices(starts_ns, latencies_ns, fraction=0.999, points=OUTLIER_POINTS):
    """Which samples to show one by one: those above a quantile. Where they are too many, the largest of them and the
    largest of each bin, so that no maximum is lost."""
    rank = max(0, int(numpy.ceil(fraction * len(latencies_ns))) - 1)
    threshold = numpy.partition(latencies_ns, rank)[rank]
    above = numpy.flatnonzero(latencies_ns > threshold)
    if len(above) <= points:
        return above
    largest = above[numpy.argsort(-latencies_ns[above], kind="stable")]
    begin, end = starts_ns.min(), starts_ns.max()
    width = (end - begin) / TIMELINE_BINS or 1.0
    _, of_bins = numpy.unique(((starts_ns[largest] - begin) / width).astype(numpy.int64), return_index=True)
    return numpy.unique(numpy.concatenate([largest[:points], largest[of_bins]]))
