"""Latency over the run. Every sample, or bins of them where they are many; of a result without samples, its hundredths.
The slowest commands carry the mark of what was counted around them."""

import numpy
from matplotlib.lines import Line2D

import frames
import style
from arithmetic import outlier_indices, time_bins
from distribution import shown_ns
from series import legend_texts
from units import count_text, time_text

# Beyond, single points cover each other.
MOST_POINTS = 50_000
# Beyond, an SVG of single points is slow to open.
MOST_VECTORS = 3_000

CAUSES = {
    "interrupt": ("^", "#D55E00", "interrupt"),
    "run-queue-wait": ("s", "#0072B2", "CPU ran others"),
    "steal": ("D", "#CC79A7", "hypervisor ran others"),
    "stopped": ("X", "#000000", "process stopped"),
    "major-fault": ("v", "#009E73", "page fault with I/O"),
    "retransmission": ("P", "#E69F00", "sent again"),
    "device-error": ("*", "#E69F00", "device error"),
    None: ("o", "#595959", "nothing counted that long"),
}
MACHINE_WORDS = (
    ("interrupts", "interrupt", "s"), ("voluntary_switches", "voluntary switch", "es"),
    ("involuntary_switches", "involuntary switch", "es"), ("minor_faults", "minor fault", "s"),
    ("major_faults", "major fault", "s"), ("smi_count", "SMI", "s"),
)
MACHINE_TIMES = (("run_queue_wait_ns", "of waiting for the CPU"), ("steal_ns", "stolen by the hypervisor"))


def timeline(all_series):
    title, details = frames.heading(all_series, "Latency over time")
    if len(all_series) == 1 and all_series[0].machine:
        details.append("Meanwhile, warm-up included: " + machine_text(all_series[0].machine))
    several = len(all_series) > 1
    height_inch = 1.3 + 1.9 * len(all_series) if several else style.HEIGHT_INCH
    figure, panels = frames.new(title, details, panels=len(all_series), height_inch=height_inch, sharex=True)
    low_ns, high_ns = (f(ends) for f, ends in zip((min, max), zip(*map(span, all_series))))
    end_ns = max(map(last_start, all_series))
    handles, texts = {}, legend_texts(all_series)
    for axes, series, text in zip(panels, all_series, texts):
        frames.latency_axis(axes.yaxis, axes, low_ns, high_ns)
        frames.time_axis(axes, end_ns)
        handles |= draw(axes, series)
        frames.draw_floor(axes, [series], upright=False)
        if several:
            axes.set_title(frames.shortened(text, 90), size=8, loc="left")
        if axes is not panels[-1]:
            axes.set_xlabel("")
    frames.legend(figure, list(handles.values()), list(handles))
    return figure


def machine_text(machine):
    words = [f"{count_text(machine[name])} {word}{'' if machine[name] == 1 else plural}"
             for name, word, plural in MACHINE_WORDS if machine.get(name)]
    words += [f"{time_text(machine[name], 3)} {word}" for name, word in MACHINE_TIMES if machine.get(name)]
    return ", ".join(words) or "no interrupt, no switch, no fault"


def draw(axes, series):
    """Draws a panel; gives its handles by what the legend says of them."""
    if series.latencies_ns is None:
        handles = draw_windows(axes, series.windows)
    elif series.n <= MOST_POINTS:
        handles = draw_points(axes, series)
    else:
        handles = draw_bins(axes, series)
    return handles | draw_causes(axes, series.outliers)


def draw_points(axes, series):
    points, = axes.plot(series.starts_ns, shown_ns(series.latencies_ns), linestyle="none", marker=".", markersize=2.2,
                        color="#56B4E9", markeredgewidth=0, rasterized=series.n > MOST_VECTORS, gid="samples")
    bins = time_bins(series.starts_ns, series.latencies_ns, bins=min(100, max(1, series.n // 20)))
    median, = axes.plot(bins.at_ns, shown_ns(bins.median_ns), color="black", linewidth=0.9, gid="median")
    return {"each command": seen(points), "median": median}


def draw_bins(axes, series):
    bins = time_bins(series.starts_ns, series.latencies_ns)
    band = axes.fill_between(bins.at_ns, shown_ns(bins.low_ns), shown_ns(bins.high_ns), step="mid", color=style.PALE,
                             alpha=0.55, linewidth=0, gid="range")
    chosen = outlier_indices(series.starts_ns, series.latencies_ns)
    points, = axes.plot(series.starts_ns[chosen], shown_ns(series.latencies_ns[chosen]), linestyle="none", marker=".",
                        markersize=2.6, color="#0072B2", markeredgewidth=0, rasterized=len(chosen) > MOST_VECTORS,
                        gid="outliers")
    median, = axes.plot(bins.at_ns, shown_ns(bins.median_ns), color="black", linewidth=0.9, gid="median")
    return {f"smallest to largest of each of {len(bins.at_ns)} bins": band, "commands above p99.9": seen(points), "median": median}


def seen(points):
    """A dot of a legend, large enough to be seen."""
    return Line2D([], [], linestyle="none", marker=".", markersize=6, markeredgewidth=0, color=points.get_color())


def draw_windows(axes, windows):
    handles = {}
    for number, (name, figures) in enumerate((("max", windows.max_ns), ("p99", windows.p99_ns), ("p50", windows.p50_ns))):
        if any(ns is not None for ns in figures):
            shown = [numpy.nan if ns is None else shown_ns(ns) for ns in figures]
            handles[f"{name} of each window"], = axes.plot(
                windows.at_ns, shown, drawstyle="steps-post", linewidth=1.0, gid=f"window-{name}",
                color=("#56B4E9", "#D55E00", "#000000")[number], linestyle=(style.LINES[3], style.LINES[1], "-")[number])
    return handles


def draw_causes(axes, outliers):
    handles = {}
    by_cause = {}
    for outlier in outliers:
        # A cause of a later version has no mark of its own; it keeps its name.
        by_cause.setdefault(outlier.cause, []).append(outlier)
    for cause in sorted(by_cause, key=str):
        shape, colour, words = CAUSES.get(cause, ("h", "#000000", cause))
        handles[f"slowest: {words}"], = axes.plot(
            [outlier.at_ns for outlier in by_cause[cause]], [shown_ns(outlier.latency_ns) for outlier in by_cause[cause]],
            linestyle="none", marker=shape, markersize=6.5, markerfacecolor="none", markeredgecolor=colour,
            markeredgewidth=1.2, gid=f"cause-{cause}", zorder=4)
    return handles


def span(series):
    """Smallest and largest latency that a panel shows."""
    if series.latencies_ns is not None:
        ends = list(series.distribution.values_ns[[0, -1]])
    else:
        windows = series.windows
        ends = [ns for ns in (*windows.p50_ns, *windows.p99_ns, *windows.max_ns) if ns is not None]
    ends += [outlier.latency_ns for outlier in series.outliers]
    return shown_ns(min(ends)), shown_ns(max(ends))


def last_start(series):
    starts = series.windows.at_ns if series.latencies_ns is None else [series.starts_ns.max()]
    return max([*starts, *(outlier.at_ns for outlier in series.outliers)])


def has_timeline(series):
    return series.latencies_ns is not None or bool(series.outliers) or any(ns is not None for ns in series.windows.max_ns)
