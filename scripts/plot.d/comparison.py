"""A comparison as `lat-probe compare` and `ab` write it, as far as its shift functions go."""

from dataclasses import dataclass

from faults import Refused


@dataclass
class Shift:
    percentile: float
    shift_ns: float
    # None where there are too few rounds for an interval.
    low_ns: float | None
    high_ns: float | None


@dataclass
class Side:
    name: str
    control: bool
    shifts: list
    # The figures of p50: how it was judged, and what counts.
    verdict: str | None
    least_effect_ns: float | None
    unresolvable_ns: float | None


@dataclass
class ComparedPoint:
    number: int
    engine: str
    operation: str | None
    bs_bytes: int | None
    qd: int | None
    jobs: int | None
    sides: list


@dataclass
class Comparison:
    file: str
    base: str
    rounds: int
    level: float
    points: list


def comparison_of(document, only_point):
    sides = document.at("sides").needed().items()
    if len(sides) < 2:
        raise Refused(f"{document.path}: it has one side, so there is no shift; compare two: lat-probe compare A='a*.json' B='b*.json'")
    points = document.at("points").needed().items()
    if only_point is not None and only_point > len(points):
        raise Refused(f"{document.path}: it has {len(points)} points, there is no --point {only_point}")
    chosen = range(len(points)) if only_point is None else [only_point - 1]
    level = document.at("method", "level_of_each").needed().number()
    if level > 1:
        raise document.at("method", "level_of_each").wrong("is no probability")
    return Comparison(
        document.path,
        base=sides[0].at("name").needed().text(),
        rounds=min(side.at("rounds").needed().count() for side in sides),
        level=level,
        points=[point_of(points[index], index + 1) for index in chosen],
    )


def point_of(point, number):
    return ComparedPoint(
        number,
        engine=point.at("engine").needed().text(),
        operation=point.at("operation").text(),
        bs_bytes=point.at("bs_bytes").count(),
        qd=point.at("qd").count(),
        jobs=point.at("jobs").count(),
        sides=[side_of(side) for side in point.at("sides").needed().items()[1:]],
    )


def side_of(side):
    medians = [figure.at("against_first") for figure in side.at("figures").items() if figure.at("figure").text() == "p50"]
    anywhere = -(2.0**53)
    shifts = []
    for shift in side.at("shift_function").items():
        percentile = shift.at("percentile").needed().number()
        if not percentile < 100:
            raise shift.at("percentile").wrong("is not below 100")
        bounds = [shift.at(name).number(anywhere) for name in ("low_ns", "high_ns")]
        estimate_ns = shift.at("shift_ns").needed().number(anywhere)
        if None in bounds:
            bounds = [None, None]
        elif not bounds[0] <= estimate_ns <= bounds[1]:
            raise shift.wrong("has its estimate outside of its interval")
        shifts.append(Shift(percentile, estimate_ns, *bounds))
    return Side(
        name=side.at("name").needed().text(),
        control=side.at("control").value is True,
        shifts=sorted(shifts, key=lambda shift: shift.percentile),
        verdict=medians[0].at("verdict").text() if medians else None,
        least_effect_ns=medians[0].at("least_effect_ns").number() if medians else None,
        unresolvable_ns=medians[0].at("unresolvable_ns").number() if medians else None,
    )
