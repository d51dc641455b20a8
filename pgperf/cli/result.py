"""A run's figures for a terminal, from the object that `run --json` prints. Pure."""

from collections.abc import Iterator, Sequence
from typing import Any

from pgperf.analysis.verdict import WORDS
from pgperf.cli.text_table import UNKNOWN, interval, number, signed, table, times
from pgperf.core.layers import LAYERS
from pgperf.core.records import crowds_apart

Row = dict[str, Any]

_COLD = (
    ("startup", "start-up"), ("connect", "connect"), ("first", "first"), ("second", "second"),
    ("next_ten", "next ten"), ("other_query_first", "other, first"), ("other_query_second", "other, second"),
)  # fmt: skip

_IDLE = {
    "awake": "Processors were kept awake; on an idle machine every call also pays for waking them (--idle system).",
    "system": "Idle processors could sleep: waking them is part of every call here, and much of the scatter.",
}


def report(result: Row) -> str:
    """Everything a reader of a terminal needs, part by part."""
    return "\n\n".join(part for part in _parts(result) if part)


def _parts(result: Row) -> Iterator[str]:
    yield _headline(result["run"])
    yield from (_ladder(ladder, result["ladders"]) for ladder in result["ladders"])
    yield _changes(result["comparisons"])
    yield _beside(result)
    yield _verdicts(result["variants"])
    yield _controls(result["comparisons"])
    yield _cold(result["variants"])
    yield _skipped(result["run"])


def _headline(run: Row) -> str:
    kind = ", quick" if run["quick"] else ""
    line = f"{run['benchmark']} #{run['id']} on {run['database']}{kind}: {run['status']}"
    if run["partial"]:
        line += "\nUnfinished: the figures are those of its finished blocks."
    idle = run["environment"].get("idle", {}).get("idle")
    line += f"\n{_IDLE[idle]}" if idle in _IDLE else ""
    return line


def _ladder(ladder: Row, ladders: Sequence[Row]) -> str:
    several = len({other.get("workload") for other in ladders}) > 1
    what = f"{ladder['workload']} over" if several else "over"
    both = len({other.get("driver") for other in ladders}) > 1
    route = f"{ladder['route']} on {ladder['driver']}" if both else ladder["route"]
    clients = "1 client" if ladder["clients"] == 1 else f"{ladder['clients']} clients"
    title = f"Ladder {what} {route}: {ladder['mode']}, {clients}, {ladder['placement']}; 95 % intervals"
    head = ("", "µs per operation", "", "step, µs", "", f"over {_title(ladder['steps'][0])}", "")
    return f"{title}\n{table(head, [_step(step, at) for at, step in enumerate(ladder['steps'])])}"


def _step(step: Row, position: int) -> tuple[str, ...]:
    own = (_title(step), number(step["us"]), interval(number(step["low"]), number(step["high"])))
    if position == 0:
        return (*own, "", "", "", "")
    return (
        *own,
        signed(step["step_us"]),
        interval(signed(step["step_low_us"]), signed(step["step_high_us"])),
        times(step["ratio"]),
        interval(times(step["ratio_low"]), times(step["ratio_high"])),
    )


def _title(step: Row) -> str:
    entry = LAYERS.get(step["layer"])
    return entry.title if entry else str(step["layer"])


def _beside(result: Row) -> str:
    """What was measured and stands on no ladder, and what no ladder could be made of."""
    on_ladder = {step["label"] for ladder in result["ladders"] for step in ladder["steps"]}
    rows = [
        _speed(variant, result["comparisons"])
        for variant in result["variants"]
        if variant["label"] not in on_ladder and not variant["control"]
    ]
    head = ("Beside the ladder", "µs per operation", "", "over", "", "")
    return table(head, rows) if rows else ""


def _speed(variant: Row, comparisons: Sequence[Row]) -> tuple[str, ...]:
    own = (number(variant["us_per_op_low"]), number(variant["us_per_op_high"]))
    first = next((row for row in comparisons if row["variant"] == variant["label"] and not row["aa"]), None)
    against = (first["baseline"], times(first["ratio"]), _ratio_interval(first)) if first else ("", "", "")
    return variant["label"], number(variant["us_per_op"]), interval(*own), *against


def _verdicts(variants: Sequence[Row]) -> str:
    """What bounds each variant, its numbers, what they do not tell, and the laws that its figures break."""
    rows = [
        (variant["label"], certain(variant["verdict"]), evidence(variant["verdict"]))
        for variant in variants
        if not variant["control"] and variant["verdict"]["word"]
    ]
    laws = [f"{v['label']}: {law} does not hold" for v in variants for law in broken(v["verdict"])]
    shown = table(("What bounds it", "", ""), rows, left=3) if rows else ""
    return "\n".join([*([shown] if shown else []), *laws])


def certain(verdict: Row) -> str:
    """A verdict's word, and how certain it is where it claims something."""
    said = str(WORDS.get(verdict["word"], verdict["word"]))
    return f"{said}, {verdict['certainty']}" if verdict["certainty"] else said


def evidence(verdict: Row) -> str:
    """The numbers that say so, and what they do not tell."""
    capacity = (verdict.get("checks") or {}).get("capacity") or {}
    found = str(verdict["evidence"] or "")
    if not capacity.get("withheld"):
        return found
    untold = f"Says nothing of what the server could do: {capacity.get('why') or UNKNOWN}"
    return ". ".join(filter(None, (found, untold)))


def broken(verdict: Row) -> Iterator[str]:
    """The laws that a variant's figures do not obey."""
    checks = verdict.get("checks") or {}
    if (checks.get("little") or {}).get("holds") is False:
        yield "Little's law"
    for role, check in (checks.get("utilisation") or {}).items():
        if check.get("holds") is False:
            yield f"the utilisation law ({role})"


def _changes(comparisons: Sequence[Row]) -> str:
    """What the second workload costs in each layer beyond the first, or saves; and what more clients do."""
    same = [
        row
        for row in comparisons
        if not row["aa"] and row["variant"].split(" · ")[:2] == row["baseline"].split(" · ")[:2]
    ]
    crowds = [row for row in same if crowds_apart(row["variant"], row["baseline"])]
    works = [row for row in same if row not in crowds]
    shown = ("One workload against the other", works), ("More clients", crowds)
    return "\n\n".join(_changed(title, rows) for title, rows in shown if rows)


def _changed(title: str, comparisons: Sequence[Row]) -> str:
    rows = [
        (row["variant"], row["baseline"], signed(row["delta_us"]), _delta_interval(row), row["outcome"])
        for row in comparisons
    ]
    return table((title, "instead of", "µs", "", "outcome"), rows)


def _delta_interval(row: Row) -> str:
    return interval(signed(row["delta_low_us"]), signed(row["delta_high_us"]))


def _controls(comparisons: Sequence[Row]) -> str:
    """Each control against what it is a copy of: 1 belongs into 19 of 20 of these intervals."""
    rows = [
        (row["variant"], times(row["ratio"]), _ratio_interval(row), row["outcome"])
        for row in comparisons
        if row["aa"]
    ]
    return table(("Controls (a variant against itself)", "ratio", "", "outcome"), rows) if rows else ""


def _ratio_interval(row: Row) -> str:
    return interval(times(row["low"]), times(row["high"]))


def _cold(variants: Sequence[Row]) -> str:
    rows = [
        (variant["label"], *(number(variant["cold_us"][phase]) for phase, _ in _COLD))
        for variant in variants
        if not variant["control"] and any(value is not None for value in variant["cold_us"].values())
    ]
    return table(("Cold phases, µs", *(title for _, title in _COLD)), rows) if rows else ""


def _skipped(run: Row) -> str:
    lines = [f"Skipped {name}: {reason}" for name, reason in run["skipped"].items()]
    return "\n".join(lines)
