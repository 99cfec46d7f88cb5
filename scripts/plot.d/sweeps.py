"""Figures over a list of points: latency and throughput against queue depth, and against block size."""

from dataclasses import replace

import frames
import style
from series import legend_texts
from units import count_text, size_text

NAN = float("nan")


def groups(all_series, name):
    """Series that differ in one fact alone, ordered by it; those of one file only where a value would be there twice."""
    by_facts = {}
    for series in all_series:
        value = getattr(series.facts, name)
        if series.is_result and value:
            others = replace(series.facts, file="", point=0, floor_ns=None, **{name: None})
            by_facts.setdefault(tuple(others.parts().values()), []).append(series)
    found = []
    for members in by_facts.values():
        values = [getattr(series.facts, name) for series in members]
        if len(set(values)) == len(values):
            found.append(members)
            continue
        by_file = {}
        for series in members:
            by_file.setdefault(series.facts.file, []).append(series)
        found += by_file.values()
    ordered = [sorted(members, key=lambda series: getattr(series.facts, name)) for members in found]
    return [members for members in ordered if len({getattr(series.facts, name) for series in members}) > 1]


def number_or_nan(value):
    return NAN if value is None else value


def depth(all_series):
    return sweep(groups(all_series, "qd"), "qd", "Latency and throughput by queue depth", count_text,
                 "Queue depth (commands)", ("ops_per_s", "Throughput (commands/s)", ""))


def sizes(all_series):
    return sweep(groups(all_series, "bs_bytes"), "bs_bytes", "Latency and throughput by block size", size_text,
                 "Block size ({units})", ("bytes_per_s", "Throughput (B/s)", "B/s"))


def sweep(found, name, what, text, label, throughput):
    members = [series for group in found for series in group]
    values = sorted({getattr(series.facts, name) for series in members})
    figure, (above, below) = frames.new(*frames.heading(members, what), panels=2, height_inch=5.4, sharex=True,
                                        gridspec_kw={"height_ratios": (5, 4)})
    latencies = [series.percentiles_ns[percent] for series in members for percent in ("50", "99")]
    latencies = [ns for ns in latencies if ns is not None] or [1.0]
    floor = frames.floors(members)
    # The floor is what the latency rests on: a sweep shows it, unless that would press the curves together.
    low = min(latencies) if floor is None or floor[0] < min(latencies) / 100 else min(min(latencies), floor[0])
    frames.latency_axis(above.yaxis, above, low, max(latencies))
    handles, texts = [], []
    for number, (group, named) in enumerate(zip(found, group_texts(found, name))):
        at = [getattr(series.facts, name) for series in group]
        for percent, dashed in (("50", False), ("99", True)):
            figures = [number_or_nan(series.percentiles_ns[percent]) for series in group]
            line, = above.plot(at, figures, gid=f"p{percent}-{number}", **figure_style(number, dashed))
            handles.append(line)
            texts.append(", ".join(filter(None, (f"p{percent}", named))))
        below.plot(at, [number_or_nan(getattr(series, throughput[0])) for series in group],
                   gid=f"throughput-{number}", **figure_style(number, False))
    frames.size_axis(above, values, text)
    frames.draw_floor(above, members, upright=False)
    rates = [getattr(series, throughput[0]) or 0 for series in members]
    frames.rate_axis(below, max(rates), throughput[2])
    below.set_ylabel(throughput[1])
    below.set_xlabel(label.format(units=frames.units_of(map(text, values))))
    figure.align_ylabels()
    frames.legend(figure, handles, texts)
    return figure


def group_texts(found, name):
    """What tells a group from the others; nothing where it is alone."""
    if len(found) == 1:
        return [""]
    return legend_texts([replace(group[0], facts=replace(group[0].facts, **{name: None})) for group in found])


def figure_style(number, dashed):
    """A group has a marker and a colour; p50 a full line and a full marker, p99 dashes and a hollow one."""
    colour = style.COLOURS[number % len(style.COLOURS)]
    return {"color": colour, "linestyle": style.LINES[1] if dashed else "-", "marker": style.marker(number),
            "markerfacecolor": "white" if dashed else colour}
