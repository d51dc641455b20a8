"""A run as Markdown to paste into a ticket, from the object that `run --json` prints. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from pgperf.analysis.scheduler_states import PARTS
from pgperf.cli.result import broken, certain, evidence
from pgperf.cli.text_table import UNKNOWN, interval, number, signed, times
from pgperf.core.layers import LAYERS, distributions

Row = dict[str, Any]

_HASH_CHARACTERS = 12
_PARTS = {"run_queue": "run queue", "unseen": "not seen"}
#: These would end a cell, begin HTML or emphasis, or start a code span.
_ESCAPED = str.maketrans({char: f"\\{char}" for char in "\\|<>*`"} | {"\n": " ", "\r": " "})


def markdown(result: Row) -> str:
    """Headline, verdicts, ladders, where the time goes, more clients, comparisons, controls, environment in short."""
    return "\n\n".join(part for part in _parts(result) if part)


def table(head: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> str:
    """A pipe table: the first `left` columns to the left, numbers to the right. Cells are escaped."""
    rule = ["---" if at < left else "---:" for at in range(len(head))]
    lines = [list(map(escaped, head)), rule, *(list(map(escaped, row)) for row in rows)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def escaped(text: str) -> str:
    """The text as itself: no markup, no link, no end of a cell."""
    return text.translate(_ESCAPED).replace("](", "]\\(")


def environment_line(environment: Row) -> str:
    """What was measured on, in one line; what is not known is left out."""
    packages, machine, server = (environment.get(key) or {} for key in ("packages", "machine", "server"))
    pooler = environment.get("pooler") or {}
    facts = (
        ("pgperf", environment.get("pgperf")),
        ("Python", environment.get("python")),
        *((name, packages.get(name)) for name in ("Django", *distributions())),
        ("PostgreSQL", server.get("server_version")),
        ("", pooler.get("version") or pooler.get("name")),
        ("kernel", machine.get("kernel")),
        ("processors:", machine.get("processors")),
        ("", machine.get("processor")),
    )
    return " · ".join(f"{name} {value}".strip() for name, value in facts if value)


def _parts(result: Row) -> Iterator[str]:
    run = result["run"]
    measured = [variant for variant in result["variants"] if not variant["control"]]
    yield _headline(run)
    yield _verdicts(measured)
    yield from (_ladder(ladder) for ladder in result["ladders"])
    yield _spent(measured)
    yield _scaling(result["scaling"])
    compared = [row for row in result["comparisons"] if not row["aa"]]
    controls = [row for row in result["comparisons"] if row["aa"]]
    yield _comparisons("Comparisons", compared)
    yield _comparisons("Controls: the same thing against itself", controls)
    yield _environment(run)


def _headline(run: Row) -> str:
    kind = ", quick" if run["quick"] else ""
    lines = [
        f"### {escaped(run['benchmark'])} #{run['id']} on {escaped(run['database'])}{kind}: {run['status']}"
    ]
    if run["partial"]:
        lines.append("Unfinished: the figures are those of its finished blocks.")
    if run["error"]:
        lines.append(escaped(run["error"]))
    times_ = " to ".join(moment for moment in (run["started"], run["finished"]) if moment)
    lines.append(f"{times_ or 'not started'}; definition `{run['definition_hash'][:_HASH_CHARACTERS]}`")
    lines += [f"Skipped {escaped(name)}: {escaped(reason)}" for name, reason in run["skipped"].items()]
    return "\n\n".join(lines)


def _verdicts(variants: Sequence[Row]) -> str:
    """What bounds each variant, its numbers, what they do not tell, and the laws that its figures break."""
    rows = [
        (variant["label"], certain(variant["verdict"]), evidence(variant["verdict"]))
        for variant in variants
        if variant["verdict"]["word"]
    ]
    laws = [f"{escaped(v['label'])}: {law} does not hold" for v in variants for law in broken(v["verdict"])]
    shown = table(("variant", "what bounds it", "evidence"), rows, left=3)
    return "\n\n".join(["**What bounds it**", shown, *laws]) if rows else ""


def _spent(variants: Sequence[Row]) -> str:
    """The parts of an operation's time; a part that no variant has, has no column."""
    shown = [variant for variant in variants if any(variant["time_us_per_op"].values())]
    there = [part for part in PARTS if any(variant["time_us_per_op"][part] for variant in shown)]
    head = ("variant", "µs per operation", *(_PARTS.get(part, part) for part in there))
    rows = [
        (
            variant["label"],
            number(variant["us_per_op"]),
            *(_part(variant["time_us_per_op"], part) for part in there),
        )
        for variant in shown
    ]
    return f"**Where the time is spent**, µs\n\n{table(head, rows)}" if rows else ""


def _part(own: Row, part: str) -> str:
    """Waiting and what is not seen take each other's place: the one that is not there is not unknown."""
    other = {"waiting": "unseen", "unseen": "waiting"}.get(part)
    return "–" if other and own[part] is None and own[other] is not None else number(own[part])


def _scaling(scaling: Sequence[Row]) -> str:
    """A row per number of clients, where there were several."""
    head = ("layer and route", "clients", "operations/s", "95 %", "efficiency", "p50, µs", "p99, µs")
    rows = [
        (_curve(series, scaling), *_point(point))
        for series in scaling
        if len(series["points"]) > 1
        for point in series["points"]
    ]
    return f"**More clients**\n\n{table(head, rows)}" if rows else ""


def _curve(series: Row, scaling: Sequence[Row]) -> str:
    """Layer and route, and whatever else tells it from the run's others."""
    more = [series[key] for key in ("workload", "mode") if len({other.get(key) for other in scaling}) > 1]
    return " · ".join([_title(series), series["route"], *more])


def _point(point: Row) -> tuple[str, ...]:
    efficiency = point.get("efficiency")
    return (
        str(point["clients"]),
        number(point.get("ops_per_s")),
        interval(number(point.get("low")), number(point.get("high"))),
        UNKNOWN if efficiency is None else f"{efficiency:.0%}",
        number(point.get("p50_us")),
        number(point.get("p99_us")),
    )


def _ladder(ladder: Row) -> str:
    rungs = [*ladder["steps"], *ladder.get("side", [])]
    if not rungs:
        return ""
    clients = "1 client" if ladder["clients"] == 1 else f"{ladder['clients']} clients"
    about = ", ".join(filter(None, (ladder.get("driver"), ladder["mode"], clients, ladder["placement"])))
    head = (
        "layer", "µs per operation", "95 %", "step, µs", "95 %", f"over {_title(rungs[0])}", "95 %",
    )  # fmt: skip
    rows = [_rung(rung, first=at == 0, beside=at >= len(ladder["steps"])) for at, rung in enumerate(rungs)]
    return f"**Ladder over {escaped(ladder['route'])}** ({escaped(about)})\n\n{table(head, rows)}"


def _rung(rung: Row, *, first: bool, beside: bool) -> tuple[str, ...]:
    title = f"{_title(rung)}, beside" if beside else _title(rung)
    own = (title, number(rung["us"]), interval(number(rung["low"]), number(rung["high"])))
    if first:
        return (*own, "", "", "", "")
    return (
        *own,
        signed(rung["step_us"]),
        interval(signed(rung["step_low_us"]), signed(rung["step_high_us"])),
        times(rung["ratio"]),
        interval(times(rung["ratio_low"]), times(rung["ratio_high"])),
    )


def _comparisons(title: str, rows: Sequence[Row]) -> str:
    head = ("variant", "against", "outcome", "time ratio", "95 %", "difference, µs", "95 %")
    cells = [
        (
            row["variant"],
            row["baseline"],
            row["outcome"],
            times(row["ratio"]),
            interval(times(row["low"]), times(row["high"])),
            signed(row["delta_us"]),
            interval(signed(row["delta_low_us"]), signed(row["delta_high_us"])),
        )
        for row in rows
    ]
    return f"**{title}**\n\n{table(head, cells, left=3)}" if cells else ""


def _environment(run: Row) -> str:
    line = environment_line(run["environment"])
    return f"**Environment**: {escaped(line)}" if line else ""


def _title(rung: Row) -> str:
    entry = LAYERS.get(rung["layer"])
    return entry.title if entry else str(rung["layer"])
