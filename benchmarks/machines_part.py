"""Whether the machine's part in a run accounts for an answer that quiet runs do not give.

The machine's part is what steal and other processes had of the times and of the host. An answer
compares figures with the limits of its rule. Where such a figure would be on the other side of a limit
without the machine's part, or may be, that part can have changed the answer.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from benchmarks.published import Judgement, Row, Run, line
from benchmarks.published_figures import disturbed_ratio, known_disturbance


@dataclass(frozen=True)
class Figure:
    """A figure that a rule compares with its limits. Without the machine's part it is from `low` to
    `high`; None is not known. `disturbed`: the most that the machine had of it, a share.
    """

    what: str
    low: float | None
    high: float | None
    limits: tuple[float, ...]
    disturbed: float

    @property
    def reached(self) -> float | None:
        """A limit on whose side the machine can have decided; None if there is none."""
        if self.low is None or self.high is None or self.disturbed <= 0:
            return None
        return next((limit for limit in self.limits if self.low <= limit <= self.high), None)

    def __str__(self) -> str:
        return f"{self.what} may be {self.low:.3g} to {self.high:.3g}, the limit is {self.reached:.3g}"


def of_ratio(run: Run, row: Row, other: Row, *limits: float) -> Figure:
    """Time over the other's time."""
    found = disturbed_ratio(run, row, other)
    what = f"time of {row['label']} over {other['label']}"
    return Figure(what, found.low, found.high, limits, max(map(known_disturbance, (row, other))))


def least_idle(rows: Iterable[Row], limit: float) -> Iterator[Figure]:
    """The least idle share of the host in all rows; nothing if none is known. What others had may have
    been idle.
    """
    known = [(idle, _others(row)) for row in rows if (idle := share_of(row, "idle")) is not None]
    if known:
        low, high = min(idle for idle, _ in known), min(idle + others for idle, others in known)
        yield Figure("least idle share", low, high, (limit,), max(others for _, others in known))


def most_steal(rows: Iterable[Row], limit: float) -> Iterator[Figure]:
    """The most that was stolen in a row, all of it the machine's; nothing if that is not known."""
    known = [steal for row in rows if (steal := share_of(row, "steal")) is not None]
    if known:
        yield Figure("stolen share", 0.0, max(known), (limit,), max(known))


def busiest_pooler(rows: Iterable[Row], limit: float) -> Iterator[Figure]:
    """The most of one CPU that the pooler used in a row; nothing if that is not known. Without
    disturbances, shorter operations would have kept it busier.
    """
    known = [(busy, known_disturbance(row)) for row in rows if (busy := pooler_of(row))]
    if known:
        high = max(busy / (1 - share) if share < 1 else math.inf for busy, share in known)
        low, disturbed = (max(values) for values in zip(*known, strict=True))
        yield Figure("CPU of the pooler", low, high, (limit,), disturbed)


def share_of(row: Row, name: str) -> float | None:
    """A role's share of the host."""
    share: float | None = ((row["cpu_account"] or {}).get("share") or {}).get(name)
    return share


def pooler_of(row: Row) -> float:
    """Share of one CPU that the pooler used; 0 if unknown."""
    return ((row["cpu_account"] or {}).get("busiest") or {}).get("pooler") or 0.0


def _others(row: Row) -> float:
    """The share of the host that steal and other processes had; 0 if unknown."""
    runner = (row["cpu_account"] or {}).get("runner") or 0.0  # pgperf's own part of `other`
    return max(0.0, (share_of(row, "other") or 0.0) - runner) + (share_of(row, "steal") or 0.0)


def unexplained(
    found: Sequence[Judgement], quiet: Sequence[Judgement], figures: Sequence[Sequence[Figure]]
) -> list[str]:
    """The answers that quiet runs do not give, and for which the machine's part does not account."""
    return [
        f"{mine.conclusion}: {mine.word}, quiet {theirs.word}"
        for mine, theirs, own in zip(found, quiet, figures, strict=True)
        if mine.word != theirs.word and not accounts_for(own)
    ]


def accounts_for(figures: Iterable[Figure]) -> bool:
    """Can the machine's part have changed an answer with these figures?"""
    return any(figure.reached is not None for figure in figures)


def beside_quiet(
    found: Sequence[Judgement], quiet: Sequence[Judgement], figures: Sequence[Sequence[Figure]]
) -> str:
    """The answers beside those of quiet runs as a table in Markdown."""
    rows = [
        line("conclusion", "quiet runs", "these runs", "the same, or by the machine"),
        "|---|---|---|---|",
    ]
    for mine, theirs, own in zip(found, quiet, figures, strict=True):
        by = "the same" if mine.word == theirs.word else _by_the_machine(own)
        rows.append(line(mine.conclusion, theirs.word, mine.word, by))
    return "\n".join(rows)


def _by_the_machine(figures: Iterable[Figure]) -> str:
    said = "; ".join(str(figure) for figure in figures if figure.reached is not None)
    return f"by the machine: without its part, {said}" if said else "**no**"
