"""The record as Markdown, and both files written as a whole or not at all. Markdown is pure."""

import json
import os
import tempfile

from record import losses

FIGURES = {"p50_ns": "p50", "mean_ns": "mean", "clat_p50_ns": "clat p50", "lat_p50_ns": "lat p50", "period_ns": "period"}
CAVEATS = {
    "host": "4 KiB random reads of a cached 1 MiB file at depth one, same file and CPU for all.",
    "lab": "8 bytes at depth one on soft-RoCE under QEMU, both ends in one guest, one process and one CPU for each end. These "
           "numbers prove function and comparison, never the speed of hardware.",
}


def ns(value):
    if value is None:
        return "–"
    return f"{value:,.0f} ns" if value >= 100 else f"{value:.1f} ns"


def ratio(comparison):
    if comparison is None:
        return "–"
    found = comparison["ratio"]
    return f"{found['median']:.3f} [{found['low']:.3f}, {found['high']:.3f}] {comparison['verdict']}"


def table_line(row):
    rival = row["rival"] if row["rival"].startswith(row["tool"]) else f"{row['tool']} {row['rival']}"
    what = row["title"] if row["ours"] == "lat-probe" else f"{row['title']}, {row['ours']}"
    figure = FIGURES[row["their_figure"]] + ("" if row["same_span"] else " (other span)")
    if row["status"] != "measured":
        return f"| {what} | {ns(row['our_p50_ns'])} | {rival} | {row['status']} | | | | | |"
    latency, period = row["latency"], row["period"]
    ours = ns(latency and latency["ours"]) + (" (mean)" if row["our_figure"] == "mean_ns" else "")
    cells = [what, ns(row["our_p50_ns"]), f"{rival} {figure}", ns(latency and latency["theirs"]), ours, ratio(latency),
             ns(period and period["theirs"]), ns(period and period["ours"]), ratio(period)]
    return "| " + " | ".join(cells) + " |"


def table(rows):
    head = ["| what | our p50 | rival's figure | rival | ours | ratio | rival's period | our period | ratio |",
            "|---|---|---|---|---|---|---|---|---|"]
    return head + [table_line(row) for row in rows]


def rival_name(row):
    return f"qperf's {row['rival']}" if row["tool"] == "qperf" else row["rival"]


def loss_line(row, what):
    compared = row[what]
    figure = "period" if what == "period" else FIGURES[row["their_figure"]]
    return (f"- {row['title']}{'' if row['ours'] == 'lat-probe' else ', ' + row['ours']}: {figure} of {rival_name(row)} is "
            f"lower, {ns(compared['theirs'])} to {ns(compared['ours'])}, ratio {compared['ratio']['median']:.3f}: {row['reasons_if_higher'][what]}.")


def where_we_lose(rows):
    same, other = [], []
    for row, what in losses(rows):
        # A period appears in each row of a pair, but is one loss.
        lines = same if row["same_span"] or what == "period" else other
        if loss_line(row, what) not in lines:
            lines.append(loss_line(row, what))
    more = ["Lower, but of another span, so not the same thing:", "", *other, ""] if other else []
    return ["### Where lat-probe loses", "", *(same or ["No row of the same span, and no period."]), "", *more]


def unmeasured(part):
    lines = [f"- {contest['title']}: {one['name']}: {one['status']}: {one['reason']}" for contest in part["contests"]
             for one in contest["contenders"] if one["status"] != "measured"]
    return ["", "Not measured:", "", *lines] if lines else []


def definitions(part):
    seen = {}
    for contest in part["contests"]:
        for one in contest["contenders"]:
            seen.setdefault(one["definition"], []).append(f"{contest['name']}: {one['name']}")
    return [f"- {text} ({'; '.join(dict.fromkeys(names))})" for text, names in seen.items()]


def aim_line(aim):
    met = {True: "met", False: "not met", None: "not decided"}[aim["met"]]
    found = "nothing measured" if aim["found"] is None else aim["found"]
    return f"- {aim['aim']}: {met} ({found if isinstance(found, str) else f'{found:.3f}'})"


def section(part):
    host = part["host"]
    tools = ", ".join(f"{name} {version}" for name, version in part["tools"].items() if version)
    return [
        f"## {'On the host' if part['part'] == 'host' else 'In the lab'}", "", CAVEATS[part["part"]],
        f"{part['rounds']} rounds of {part['commands']} commands, started {part['started_at']}; {host['cpu_model']}, "
        f"{host['cpus']} CPUs, Linux {host['kernel']}, hypervisor: {host['hypervisor'] or 'none'}, load "
        f"{part['load_before']} before and {part['load_after']} after. {tools}.", "",
        *table(part["rows"]), *unmeasured(part), "", "Aims:", "", *[aim_line(aim) for aim in part["aims"]], "",
        *where_we_lose(part["rows"]), "### What the numbers are", "", *definitions(part), ""]


def markdown(record):
    lines = [
        "# lat-probe and its rivals", "",
        "Written by `scripts/bench rivals`; `rivals.json` has every round. Contenders ran in turn, in each round in the other order.",
        "Figures are medians over rounds. A ratio is ours to the rival's, paired within a round: median [interval] verdict. The "
        "interval is that of the median by order statistics, covering at least 90 % (93.75 % and all rounds with five). `lower` and "
        "`higher`: it excludes 1, and the difference is more than the rival's resolution. Otherwise `within`. `period` is the wall "
        "time per command, which no convention of stamps can hide.", ""]
    for name in ("host", "lab"):
        if name in record["parts"]:
            lines += section(record["parts"][name])
    return "\n".join(lines).rstrip() + "\n"


def write_whole(path, text):
    """Replaces a file as a whole, so that a reader never sees half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.write(text)
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def write(record, folder):
    write_whole(folder / "rivals.json", json.dumps(record, indent=1, ensure_ascii=False) + "\n")
    write_whole(folder / "rivals.md", markdown(record))
