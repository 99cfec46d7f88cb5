"""The frame of a figure: title, axes with ticks that people read, floor, legend."""

from pathlib import Path

from matplotlib import pyplot, ticker

import style
from series import legend_texts, shared
from units import count_text, percentile_text, plain, rate_text, shortened, size_text, time_text, time_unit

# On logarithmic axes nothing is below: the clocks resolve a nanosecond at best.
LEAST_NS = 1.0
LEFT_INCH = 0.12


def new(title, details, panels=1, height_inch=style.HEIGHT_INCH, **options):
    """A figure with its title, and its panels, top to bottom."""
    style.apply()
    figure, axes = pyplot.subplots(
        panels, 1, figsize=(style.WIDTH_INCH, height_inch), layout="constrained", squeeze=False, **options)
    lines = [title] + details
    head_inch = 0.12 + 0.2 + 0.165 * len(details)
    figure.get_layout_engine().set(rect=(0, 0, 1, 1 - head_inch / height_inch), w_pad=0.06, h_pad=0.05)
    for number, line in enumerate(lines):
        size, colour, weight = (10, "black", "bold") if number == 0 else (8, style.GREY, "normal")
        below_inch = 0.12 if number == 0 else 0.335 + 0.165 * (number - 1)
        text = figure.text(LEFT_INCH / style.WIDTH_INCH, 1 - below_inch / height_inch, line, size=size, color=colour,
                           weight=weight, va="top", gid=f"title-{number}")
        fit(figure, text, style.WIDTH_INCH - 2 * LEFT_INCH)
    return figure, list(axes[:, 0])


def fit(figure, text, width_inch):
    """Leaves out the middle of a text until it is not wider than that."""
    whole = text.get_text()
    text.set_text(shortened(whole, 400))
    shown = len(text.get_text())
    while shown > 8:
        wide_inch = text.get_window_extent(figure.canvas.get_renderer()).width / figure.dpi
        if wide_inch <= width_inch:
            return
        shown = min(shown - 1, int(shown * width_inch / wide_inch))
        text.set_text(shortened(whole, shown))


def heading(all_series, what):
    """Title and details of some series: what they share, how many commands, and the floor."""
    common = shared([series.facts.parts() for series in all_series])
    target, label = (common.pop(name, None) for name in ("target", "label"))
    head = ", ".join(common.values()) or "samples of " + shortened(Path(all_series[0].facts.file).name, 40)
    if not common and len(all_series) > 1:
        head = f"{len(all_series)} series"
    ns = [series.n for series in all_series]
    number = f"n = {count_text(ns[0])}" if len(ns) == 1 else f"n = {count_text(ns[0])} each"
    if min(ns) != max(ns):
        number = f"n = {count_text(min(ns))} to {count_text(max(ns))}"
    parts = [shortened(target, 44) if target else None, number, floor_text(all_series), shortened(label, 32) if label else None]
    details = [" · ".join(filter(None, parts))]
    if any(series.distribution.n and series.distribution.values_ns[0] < LEAST_NS for series in all_series):
        details.append("Latencies below 1 ns are drawn at 1 ns.")
    return f"{what}: {head}", details


def floors(all_series):
    known = [series.facts.floor_ns for series in all_series if series.facts.floor_ns]
    return (min(known), max(known)) if known else None


def floor_text(all_series):
    between = floors(all_series)
    if between is None:
        return "floor not in this file"
    low, high = (time_text(ns, 3) for ns in between)
    return f"floor {low} (p50)" if low == high else f"floors {low} to {high} (p50)"


def empty(kind, all_series, what):
    """The frame of figures of no commands at all."""
    title, details = heading(all_series, what)
    figure, (axes,) = new(title, details)
    axes.set(xlim=(0, 1), ylim=(0, 1), xticks=[], yticks=[], xlabel="Latency (ns)", ylabel="Commands")
    axes.text(0.5, 0.5, "no samples", ha="center", va="center", size=14, color=style.GREY, gid=f"{kind}-empty")
    return figure


class LogTicks(ticker.Locator):
    """1, 2 and 5 of each decade where they have room, only some decades where they have not, and even steps where the axis
    spans less than about one doubling."""

    def __init__(self, most):
        self.most = most

    def __call__(self):
        return self.tick_values(*sorted(self.axis.get_view_interval()))

    def tick_values(self, low, high):
        for subs in ((1, 2, 5), (1, 3), (1,)):
            ticks = ticker.LogLocator(subs=subs, numticks=99).tick_values(low, high)
            ticks = [tick for tick in ticks if low <= tick <= high]
            if subs == (1, 2, 5) and len(ticks) < 3:
                even = ticker.MaxNLocator(self.most - 2, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high)
                return [tick for tick in even if low <= tick <= high and tick > 0]
            if len(ticks) <= self.most:
                return ticks
        return ticks[::-(-len(ticks) // self.most)]


def set_log(axis, axes, low, high, most, text):
    """A logarithmic axis from low to high with some room, ticks as text, and fine lines without text between decades."""
    name = "x" if axis is axes.xaxis else "y"
    room = max((high / low) ** 0.04, 1.03)
    getattr(axes, f"set_{name}scale")("log")
    getattr(axes, f"set_{name}lim")(low / room, high * room)
    axis.set_major_locator(LogTicks(most))
    axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: text(value)))
    axis.set_minor_locator(ticker.NullLocator())
    axis.set_minor_formatter(ticker.NullFormatter())


def latency_axis(axis, axes, low_ns, high_ns, name="Latency"):
    """A logarithmic axis of latency. Its label has the units that its ticks use."""
    low_ns, high_ns = max(low_ns, LEAST_NS), max(high_ns, LEAST_NS)
    set_log(axis, axes, low_ns, high_ns, 9 if axis is axes.xaxis else 8, time_text)
    units = list(dict.fromkeys(time_unit(tick)[1] for tick in axis.get_majorticklocs()))
    axis.set_label_text(f"{name} ({', '.join(units) or time_unit(low_ns)[1]})")


def share_axis(axis, axes, low, name):
    set_log(axis, axes, low, 1.0, 8, lambda value: f"{plain(value * 100, 6)} %")
    axis.set_label_text(f"{name} (%)")


def percentile_axis(axes, most_n):
    """The axis of HdrHistogram's plots: logarithmic in 1/(1-q), so each decade is another nine."""
    last = max(most_n, 2)
    axes.set_xscale("log")
    axes.set_xlim(1, last * 1.12)
    percents = [0, 50, 90] + [100 - 10.0 ** (1 - nines) for nines in range(1, 16)]
    ticks = [(100 / (100 - percent), percentile_text(round(percent, 14))) for percent in percents]
    ticks = [(place, text) for place, text in ticks if place <= last * 1.12]
    axes.set_xticks([place for place, _ in ticks], [text for _, text in ticks])
    axes.xaxis.set_minor_locator(ticker.NullLocator())
    axes.set_xlabel("Percentile (%)")


def size_axis(axes, sizes, text):
    """Powers of two. Every value that was measured has a tick, unless they are too many."""
    axes.set_xscale("log", base=2)
    step = -(-len(sizes) // 10)
    axes.set_xticks(sizes[::step], [text(size) for size in sizes[::step]])
    axes.xaxis.set_minor_locator(ticker.NullLocator())
    room = (sizes[-1] / sizes[0]) ** 0.04
    axes.set_xlim(sizes[0] / room, sizes[-1] * room)


def units_of(texts):
    return ", ".join(dict.fromkeys(text.split()[-1] for text in texts))


def rate_axis(axes, highest, unit):
    axes.set_ylim(0, (highest or 1) * 1.12)
    axes.yaxis.set_major_locator(ticker.MaxNLocator(5))
    axes.yaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: rate_text(value, unit) if value else "0"))


def time_axis(axes, end_ns):
    """Time since the first command, linear, in one unit."""
    factor, unit = time_unit(end_ns or 1)
    axes.set_xlim(-0.01 * (end_ns or 1), 1.01 * (end_ns or 1))
    axes.xaxis.set_major_locator(ScaledTicks(factor))
    axes.xaxis.set_major_formatter(ticker.FuncFormatter(lambda ns, _: plain(round(ns / factor, 9))))
    axes.set_xlabel(f"Time since the first command ({unit})")


class ScaledTicks(ticker.Locator):
    """Round numbers of a unit, not of nanoseconds."""

    def __init__(self, factor):
        self.factor, self.inner = factor, ticker.MaxNLocator(9, steps=[1, 2, 2.5, 5, 10])

    def __call__(self):
        low, high = sorted(self.axis.get_view_interval())
        ticks = self.inner.tick_values(low / self.factor, high / self.factor) * self.factor
        return [tick for tick in ticks if low <= tick <= high]


def above_axes(axes, place_ns, text, row=0, **options):
    """A name of a vertical line, where no curve is."""
    axes.annotate(text, (place_ns, 1), xycoords=axes.get_xaxis_transform(), xytext=(0, 2 + 9 * row), textcoords="offset points",
                  ha="center", va="bottom", size=7, color=style.GREY, annotation_clip=False, **options)


def draw_floor(axes, all_series, upright, row=0):
    """The floor as a thin line with its name, where the axis of latency reaches it."""
    between = floors(all_series)
    low, high = axes.get_xlim() if upright else axes.get_ylim()
    if between is None or not low <= between[0] <= between[1] <= high:
        return
    line, span = (axes.axvline, axes.axvspan) if upright else (axes.axhline, axes.axhspan)
    if between[1] > between[0] * 1.02:
        span(*between, color=style.PALE, alpha=0.4, linewidth=0, zorder=0.5)
    line(between[0], color=style.GREY, linewidth=0.8, linestyle=(0, (2, 2)), zorder=1, gid="floor")
    text = floor_text(all_series).removesuffix(" (p50)")
    if upright:
        above_axes(axes, between[0], text, row, gid="floor-text")
    else:
        axes.annotate(text, (0.995, between[0]), xycoords=axes.get_yaxis_transform(), xytext=(0, 2),
                      textcoords="offset points", ha="right", va="bottom", size=7, color=style.GREY, gid="floor-text")


def legend(figure, handles, texts):
    """Below the panels, where it covers nothing; as many columns as fit."""
    texts = [shortened(text, 56) for text in texts]
    longest = max(map(len, texts))
    columns = max(1, min(len(texts), int(98 // (longest + 9))))
    figure.legend(handles, texts, loc="outside lower center", ncols=columns)


def series_legend(figure, axes, all_series):
    if len(all_series) > 1:
        handles = [line for line in axes.get_lines() if str(line.get_gid()).startswith("series-")]
        legend(figure, handles, legend_texts(all_series))


def close(figure):
    pyplot.close(figure)
