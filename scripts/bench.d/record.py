"""What is kept of a comparison, as data: lat-probe.rivals/1. Pure."""

from figures import compare, medians

SCHEMA = "lat-probe.rivals/1"
NULL_AIM = 1 / 8


def contender_record(contender):
    return {"name": contender.name, "tool": contender.tool, "ours": contender.ours, "command": " ".join(contender.command),
            "server": " ".join(contender.server) if contender.server else None, "definition": contender.definition,
            "resolution": contender.resolution, "status": contender.status, "reason": contender.reason,
            "rounds": contender.rounds, "medians": medians(contender.rounds)}


def row(contest, comparison):
    contenders = {contender.name: contender for contender in contest.contenders}
    ours, theirs = contenders[comparison.ours], contenders[comparison.theirs]
    out = next((one for one in (ours, theirs) if one.status != "measured"), None)

    def beside(our_figure, their_figure, resolution):
        pair = ([figures[name] for figures in contender.rounds]
                for contender, name in ((ours, our_figure), (theirs, their_figure)))
        return compare(*pair, resolution) if out is None else None
    return {
        "contest": contest.name, "title": contest.title, "ours": ours.name, "rival": theirs.name, "tool": theirs.tool,
        "our_figure": comparison.our_figure, "their_figure": comparison.their_figure, "same_span": comparison.same_span,
        "status": out.status if out else "measured", "reason": out.reason if out else None,
        "our_p50_ns": medians(ours.rounds).get("p50_ns"),
        "latency": beside(comparison.our_figure, comparison.their_figure, theirs.resolution),
        "period": beside("period_ns", "period_ns", {"ns": theirs.resolution.get("period_ns", 0)}),
        "reasons_if_higher": {"latency": comparison.reason, "period": comparison.period_reason}}


def part(name, facts, rounds, contests):
    """One place's share of the record: `host` or `lab`."""
    rows = [row(contest, comparison) for contest in contests for comparison in contest.comparisons]
    return {"part": name, **facts, "rounds": rounds, "contests": [
        {"name": contest.name, "title": contest.title,
         "contenders": [contender_record(contender) for contender in contest.contenders]} for contest in contests],
        "rows": rows, "aims": aims(rows)}


def is_higher(row_record, what):
    return row_record[what] is not None and row_record[what]["verdict"] == "higher"


def aims(rows):
    """The aims that these rows can decide, each with what was found; `met` is null where nothing was measured."""
    found = []
    null = next((one for one in rows if one["contest"] == "null"), None)
    if null is not None:
        ratio = null["period"]["ratio"]["median"] if null["period"] else None
        found.append({"aim": "time per command of `null` at most one eighth of fio's", "found": ratio,
                      "met": None if ratio is None else ratio <= NULL_AIM})
    decided = [one for one in rows if one["same_span"] and one["latency"] is not None]
    higher = [one for one in decided if is_higher(one, "latency")]
    found.append({"aim": "no latency above a rival's for the same span", "found": f"{len(higher)} of {len(decided)} rows above",
                  "met": not higher if decided else None})
    return found


def losses(rows):
    """Rows where a rival's figure is lower, as tuples (row, `latency` or `period`)."""
    return [(one, what) for one in rows for what in ("latency", "period") if is_higher(one, what)]
