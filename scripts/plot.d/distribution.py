"""Figures of distributions: cdf, ccdf, percentiles, histogram. Several series lie over each other."""

import numpy

import frames
import style
from arithmetic import curve_indices, histogram_edges

# Where the marker of a curve stands, so that curves are told apart without colour.
MARKED = (0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999)


def shown_ns(values_ns):
    """As values stand on a logarithmic axis."""
    return numpy.maximum(values_ns, frames.LEAST_NS)


def marked(distribution):
    """Which values carry a marker: those of the percentiles that n supports, and the largest."""
    ranks = [numpy.ceil(fraction * distribution.n - 1e-6) for fraction in MARKED
             if distribution.supported_quantile(fraction) is not None]
    places = numpy.searchsorted(distribution.up_to, numpy.maximum(ranks, 1)) if ranks else []
    return numpy.unique([*places, len(distribution.values_ns) - 1]).astype(int)


def cdf_points(distribution, indices):
    """Latency, and the share of commands that took at most so long."""
    return shown_ns(distribution.values_ns[indices]), distribution.up_to[indices] / distribution.n


def cdf_curve(distribution, indices):
    """The same from nothing on: up to the smallest latency there is no command."""
    values_ns, shares = cdf_points(distribution, indices)
    return numpy.concatenate([values_ns[:1], values_ns]), numpy.concatenate([[0], shares])


def ccdf_points(distribution, indices):
    """Latency, and the share of commands that took at least so long: 1/n for the largest."""
    return shown_ns(distribution.values_ns[indices]), distribution.from_on[indices] / distribution.n


def percentile_points(distribution, indices):
    """1/(1-q) from which on a latency is the quantile, and the latency. The largest begins at n."""
    return distribution.n / distribution.from_on[indices], shown_ns(distribution.values_ns[indices])


def span(all_series):
    """Smallest and largest latency of all series."""
    ends = [series.distribution.values_ns[[0, -1]] for series in all_series]
    return shown_ns(min(low for low, _ in ends)), shown_ns(max(high for _, high in ends))


def draw_curves(axes, all_series, points, step, curve=None):
    for number, series in enumerate(all_series):
        distribution = series.distribution
        # The markers stand apart from the line, whose points are thinned. In the legend both are one.
        axes.plot(*(curve or points)(distribution, curve_indices(distribution)), drawstyle=step, gid=f"series-{number}",
                  markevery=[], **style.line_style(number), **style.marker_style(number))
        draw_marks(axes, number, *points(distribution, marked(distribution)))


def draw_marks(axes, number, at, heights):
    axes.plot(at, heights, gid=f"marks-{number}", zorder=3, **style.line_style(number) | {"linestyle": "none"},
              **style.marker_style(number))


def finish(figure, axes, all_series, upright, floor_row=0):
    frames.draw_floor(axes, all_series, upright, floor_row)
    frames.series_legend(figure, axes, all_series)
    return figure


def cdf(all_series):
    figure, (axes,) = frames.new(*frames.heading(all_series, "Cumulative distribution"))
    frames.latency_axis(axes.xaxis, axes, *span(all_series))
    axes.set_ylim(0, 1.03)
    axes.set_yticks(numpy.arange(0, 1.01, 0.25), [f"{percent} %" for percent in (0, 25, 50, 75, 100)])
    axes.set_ylabel("Commands that took at most so long (%)")
    draw_curves(axes, all_series, cdf_points, "steps-post", cdf_curve)
    return finish(figure, axes, all_series, upright=True)


def ccdf(all_series):
    figure, (axes,) = frames.new(*frames.heading(all_series, "Tail distribution"))
    frames.latency_axis(axes.xaxis, axes, *span(all_series))
    frames.share_axis(axes.yaxis, axes, 1 / max(series.n for series in all_series), "Commands that took at least so long")
    draw_curves(axes, all_series, ccdf_points, "steps-pre")
    return finish(figure, axes, all_series, upright=True)


def percentiles(all_series):
    figure, (axes,) = frames.new(*frames.heading(all_series, "Latency by percentile"))
    frames.latency_axis(axes.yaxis, axes, *span(all_series))
    frames.percentile_axis(axes, max(series.n for series in all_series))
    draw_curves(axes, all_series, percentile_points, "steps-post")
    return finish(figure, axes, all_series, upright=False)


def histogram(all_series):
    figure, (axes,) = frames.new(*frames.heading(all_series, "Histogram"))
    low_ns, high_ns = span(all_series)
    frames.latency_axis(axes.xaxis, axes, low_ns, high_ns)
    frames.share_axis(axes.yaxis, axes, 1 / max(series.n for series in all_series), "Commands in each bin")
    edges = histogram_edges(low_ns, high_ns)
    bottom = axes.get_ylim()[0]
    for number, series in enumerate(all_series):
        shares = bin_shares(series.distribution, edges)
        if len(all_series) == 1:
            axes.stairs(shares, edges, baseline=bottom, fill=True, color=style.COLOURS[6], alpha=0.45, linewidth=0)
        # Where a bin is empty the line goes below the axis: a logarithm of zero cannot be.
        below = bottom / 2
        tops = numpy.concatenate([[below], numpy.where(shares > 0, shares, below), [below]])
        axes.plot(numpy.concatenate([edges, edges[-1:]]), tops, drawstyle="steps-pre", linewidth=1.1,
                  gid=f"series-{number}", markevery=[], **style.line_style(number), **style.marker_style(number))
        fullest = int(numpy.argmax(shares))
        if len(all_series) > 1:
            draw_marks(axes, number, [numpy.sqrt(edges[fullest] * edges[fullest + 1])], [shares[fullest]])
    if len(all_series) == 1:
        draw_quantiles(axes, all_series[0].distribution)
    return finish(figure, axes, all_series, upright=True, floor_row=1 if len(all_series) == 1 else 0)


def bin_shares(distribution, edges):
    counts, _ = numpy.histogram(shown_ns(distribution.values_ns), bins=edges, weights=distribution.counts)
    return counts / distribution.n


def draw_quantiles(axes, distribution):
    """The percentiles of a single histogram, named above the axes, each unless it would touch the one before."""
    low, high = numpy.log(axes.get_xlim())
    before = -1.0
    for text, fraction in (("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999)):
        value_ns = distribution.supported_quantile(fraction)
        if value_ns is None:
            continue
        value_ns = shown_ns(value_ns)
        axes.axvline(value_ns, color=style.GREY, linewidth=0.7, zorder=1)
        place = (numpy.log(value_ns) - low) / (high - low)
        if place - before > 0.055:
            frames.above_axes(axes, value_ns, text)
            before = place
