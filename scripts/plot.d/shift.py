"""The shift function of a comparison: by how much each percentile differs from the first side's, with intervals."""

from matplotlib import ticker

import frames
import style
from series import Facts, shared
from units import percentile_text, plain, time_text, time_unit

# A linear axis on which most shifts lie within 1/30 of its length shows nothing but the tail.
MOST_LINEAR = 30


def shift(comparison):
    points = comparison.points
    all_parts = [parts_of(comparison, point) for point in points]
    common = shared(all_parts)
    title = "Shift by percentile: " + (", ".join(common.values()) or f"{len(points)} points")
    name = frames.shortened(comparison.base, 24)
    details = [f"against {name} · {comparison.rounds} rounds a side · intervals of {plain(comparison.level * 100)} %"
               " · above zero is slower"]
    if len(points) == 1:
        details.append("; ".join(verdict_text(side) for side in points[0].sides))
    height_inch = style.HEIGHT_INCH if len(points) == 1 else 1.3 + 2.1 * len(points)
    figure, panels = frames.new(title, details, panels=len(points), height_inch=height_inch)
    sides, bands = {}, {}
    for axes, point, parts in zip(panels, points, all_parts):
        of_sides, of_bands = draw(axes, point)
        sides |= of_sides
        bands |= of_bands
        if len(points) > 1:
            own = ", ".join(text for name, text in parts.items() if text and name not in common) or f"point {point.number}"
            axes.set_title(frames.shortened(own, 90), size=8, loc="left")
    panels[-1].set_xlabel("Percentile of the latency (%)")
    if sides:
        handles = sides | bands
        frames.legend(figure, list(handles.values()), list(handles))
    return figure


def parts_of(comparison, point):
    return Facts(comparison.file, engine=point.engine, operation=point.operation, bs_bytes=point.bs_bytes, qd=point.qd,
                 jobs=point.jobs).parts()


def verdict_text(side):
    middle = [each for each in side.shifts if each.percentile == 50]
    by = f", {signed(middle[0].shift_ns)}" if middle else ""
    return f"p50 of {frames.shortened(side.name, 24)}: {side.verdict or 'not judged'}{by}"


def signed(ns):
    return f"{'+' if ns > 0 else '−' if ns < 0 else ''}{time_text(abs(ns))}"


def draw(axes, point):
    """Draws a panel; gives the handles of its sides and of its bands, by what the legend says of them."""
    percentiles = sorted({each.percentile for side in point.sides for each in side.shifts})
    if not percentiles:
        axes.set(xlim=(0, 1), ylim=(-1, 1), xticks=[], yticks=[], ylabel="Shift (ns)")
        axes.text(0.5, 0, "no shifts", ha="center", va="center", size=14, color=style.GREY)
        return {}, {}
    scale(axes, point)
    axes.axhline(0, color="black", linewidth=0.8, zorder=1)
    sides = {}
    axes.set_xticks(range(len(percentiles)), [percentile_text(percent) for percent in percentiles])
    axes.set_xlim(-0.6, len(percentiles) - 0.4)
    axes.grid(axis="x", visible=False)
    for number, side in enumerate(point.sides):
        # Beside each other, so that no interval covers another one.
        aside = (number - (len(point.sides) - 1) / 2) * min(0.16, 0.7 / len(point.sides))
        sides |= draw_side(axes, side, number, [percentiles.index(each.percentile) + aside for each in side.shifts])
    return sides, draw_bands(axes, point)


def draw_side(axes, side, number, places):
    colour, handles = style.COLOURS[(number + 1) % len(style.COLOURS)], {}
    name = side.name + (" (control)" if side.control else "")
    axes.plot(places, [each.shift_ns for each in side.shifts], color=colour, linewidth=0.7, alpha=0.6,
              linestyle=style.LINES[number % len(style.LINES)], gid=f"line-{number}")
    for known in (True, False):
        shown = [(place, each) for place, each in zip(places, side.shifts) if (each.low_ns is not None) == known]
        if not shown:
            continue
        shifts_ns = [each.shift_ns for _, each in shown]
        arms = [[each.shift_ns - each.low_ns for _, each in shown], [each.high_ns - each.shift_ns for _, each in shown]] \
            if known else None
        bars = axes.errorbar([place for place, _ in shown], shifts_ns, yerr=arms, fmt=style.marker(number), color=colour,
                             markerfacecolor=colour if known else "white", markersize=5, capsize=2.5, elinewidth=1.2)
        bars.lines[0].set_gid(f"shift-{number}" if known else f"shift-{number}-without-interval")
        handles[name if known else f"{name}, too few rounds for an interval"] = bars
    return handles


def draw_bands(axes, point):
    """What does not count, and what the instrument cannot resolve; both as judged at p50."""
    handles = {}
    for name, colour, hatch, words in (("least_effect_ns", "#E6E6E6", None, "does not count: ±"),
                                       ("unresolvable_ns", "none", "//////", "spread of the floor: ±")):
        widths = [getattr(side, name) for side in point.sides if getattr(side, name)]
        if widths:
            band = axes.axhspan(-max(widths), max(widths), facecolor=colour, hatch=hatch, edgecolor=style.PALE, linewidth=0,
                                zorder=0.4, gid=name)
            handles[words + time_text(max(widths), 3)] = band
    return handles


def scale(axes, point):
    """Linear, unless the tail's intervals would hide all else; then logarithmic to both sides of a linear middle."""
    shifts = [each for side in point.sides for each in side.shifts]
    ends = [ns for each in shifts for ns in (each.shift_ns, each.low_ns, each.high_ns) if ns is not None]
    reach, middle = max(map(abs, ends)), sorted(abs(each.shift_ns) for each in shifts)[len(shifts) // 2]
    factor, unit = time_unit(reach or 1)
    if reach > MOST_LINEAR * max(middle, 1.0):
        power = 10.0 ** (len(str(int(max(middle, 1.0)))) - 1)
        linear = next(times * power for times in (2, 5, 10) if times * power >= middle)
        axes.set_yscale("symlog", linthresh=linear, linscale=0.8)
        low, high = min(0, *ends), max(0, *ends)
        axes.set_ylim(1.6 * low - 0.15 * linear, 1.6 * high + 0.15 * linear)
        tenfolds = [power * 10.0 ** more for more in range(1, 16) if linear < power * 10.0 ** more <= 1.6 * reach]
        axes.yaxis.set_major_locator(ticker.FixedLocator([sign * ns for ns in (linear, *tenfolds) for sign in (-1, 1)] + [0]))
        axes.yaxis.set_minor_locator(ticker.NullLocator())
        axes.yaxis.set_major_formatter(ticker.FuncFormatter(lambda ns, _: signed(ns)))
        axes.set_ylabel(f"Shift (ns to {unit}, logarithmic\nbeyond ±{time_text(linear)})")
        return
    room = 0.08 * (max(0, *ends) - min(0, *ends) or 1)
    axes.set_ylim(min(0, *ends) - room, max(0, *ends) + room)
    axes.yaxis.set_major_locator(frames.ScaledTicks(factor))
    axes.yaxis.set_major_formatter(ticker.FuncFormatter(lambda ns, _: plain(round(ns / factor, 9)).replace("-", "−")))
    axes.set_ylabel(f"Shift ({unit})")
