"""Diagnostics of a variant: wait events, and the counters of the pooler and of pg_stat_statements.

`block.diagnostics` is what the runner saw in a diagnostic slice. Counts of all such slices of a
variant are added before anything is divided.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

from pgperf.core.layers import runs_statements
from pgperf.core.records import VariantBlock

#: The wait event type of a backend that waits for nothing: it runs, or is ready to run.
CPU = "CPU"
_EVENTS_SHOWN = 5
#: Calls and rows per operation count as equal up to this: nothing but our own slice is counted, so
#: they are exact.
_EQUAL = 1e-6
#: Name in a pool's counts, and which end of its range tells something.
_POOL = (
    ("cl_active", max),
    ("cl_waiting", max),
    ("sv_active", max),
    ("sv_idle", min),
    ("maxwait_us", max),
)

Raw = Mapping[str, Any]
Shares = Mapping[str, float]


@dataclass(frozen=True)
class PoolerCounters:
    """PgBouncer's counters over the diagnostic slices; times in µs. None is not known."""

    queries: int | None = None
    queries_per_op: float | None = None
    wait_us_per_query: float | None = None
    query_us_per_query: float | None = None
    cl_active_max: int | None = None
    cl_waiting_max: int | None = None
    sv_active_max: int | None = None
    sv_idle_min: int | None = None
    maxwait_us_max: float | None = None
    pool_mode: str | None = None
    polls: int | None = None

    @classmethod
    def from_json(cls, stored: Raw) -> Self:
        return cls(**{name: stored.get(name) for name in cls.__dataclass_fields__})


@dataclass(frozen=True)
class StatementCounters:
    """What pg_stat_statements counted.

    `as_expected` is None where the expected counts are not known.
    """

    calls_per_op: float | None
    rows_per_op: float | None
    as_expected: bool | None

    @classmethod
    def from_json(cls, stored: Raw) -> Self:
        return cls(**{name: stored.get(name) for name in cls.__dataclass_fields__})


@dataclass(frozen=True)
class Diagnostics:
    """What the server and its pooler reported of a variant. `notes` say why a part is None, by
    part.

    `backends` is the mean number of server processes in the samples. The shares are of all samples.
    """

    seconds: float | None
    samples: int | None
    backends: float | None
    wait_events: Shares | None
    events: Shares | None
    states: Shares | None
    pooler: PoolerCounters | None
    statements: StatementCounters | None
    notes: Mapping[str, str]

    @classmethod
    def from_json(cls, stored: Raw | None) -> Self | None:
        """None for a variant without a diagnostic slice."""
        if not stored:
            return None
        parts = ("seconds", "samples", "backends", "wait_events", "events", "states")
        pooler, statements = stored.get("pooler"), stored.get("statements")
        return cls(
            **{name: stored.get(name) for name in parts},
            pooler=PoolerCounters.from_json(pooler) if pooler else None,
            statements=StatementCounters.from_json(statements) if statements else None,
            notes=stored.get("notes") or {},
        )

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def rows_expected(blocks: Iterable[VariantBlock]) -> dict[str, int]:
    """Workload -> the rows of one operation, as a layer below the ORM reads them; objects are no
    rows.
    """
    return {
        block.variant.workload: block.rows_per_op
        for block in blocks
        if block.rows_per_op and runs_statements(block.variant.layer)
    }


def diagnostics(blocks: Iterable[VariantBlock], rows: int | None = None) -> Diagnostics | None:
    """The diagnostics of one variant from its blocks; None where it had no diagnostic slice.

    `rows` are the expected rows of one operation, None if not known.
    """
    raws = [block.diagnostics for block in blocks if block.diagnostics]
    if not raws:
        return None
    sessions = _sessions(raws)
    notes = {name: why for raw in raws for name, why in raw["notes"].items()}
    samples = sum(raw.get("samples", 0) for raw in raws)
    return Diagnostics(
        seconds=sum(raw["seconds"] for raw in raws),
        samples=sessions.total(),
        backends=sessions.total() / samples if samples and sessions else None,
        wait_events=_shares(_by_kind(sessions)),
        events=_most(_by_event(sessions), sessions.total()),
        states=_shares(_by_state(sessions)),
        pooler=_pooler(raws),
        statements=_statements(raws, rows, notes),
        notes=notes,
    )


def _sessions(raws: Iterable[Raw]) -> Counter[tuple[str, str, str]]:
    """Empty where a session had no state: pgperf may not see what it does, so no share of all is
    known.
    """
    seen: Counter[tuple[str, str, str]] = Counter()
    for raw in raws:
        for state, kind, event, times in raw["sessions"]:
            seen[state, kind, event] += times
    return seen if all(state for state, _, _ in seen) else Counter()


def _by_kind(sessions: Counter[tuple[str, str, str]]) -> Counter[str]:
    return _added((kind or CPU, times) for (_, kind, _), times in sessions.items())


def _by_event(sessions: Counter[tuple[str, str, str]]) -> Counter[str]:
    return _added((f"{kind}:{event}", times) for (_, kind, event), times in sessions.items() if kind)


def _by_state(sessions: Counter[tuple[str, str, str]]) -> Counter[str]:
    return _added((state, times) for (state, _, _), times in sessions.items())


def _added(pairs: Iterable[tuple[str, int]]) -> Counter[str]:
    total: Counter[str] = Counter()
    for name, times in pairs:
        total[name] += times
    return total


def _shares(counts: Counter[str]) -> dict[str, float] | None:
    """Of all counts, the greatest first."""
    total = counts.total()
    return {name: times / total for name, times in counts.most_common()} if total else None


def _most(events: Counter[str], samples: int) -> dict[str, float] | None:
    """The most frequent waits, of all samples."""
    if not samples:
        return None
    return {name: times / samples for name, times in events.most_common(_EVENTS_SHOWN)}


def _pooler(raws: Iterable[Raw]) -> PoolerCounters | None:
    """PgBouncer's totals over the slices, per query and per operation, and the extremes of its
    pool.
    """
    known = [raw for raw in raws if raw["pooler"]]
    if not known:
        return None
    totals = _added((name, value) for raw in known for name, value in raw["pooler"]["totals"].items())
    queries, ops = totals["query_count"], sum(raw["ops"] for raw in known)
    return PoolerCounters(
        queries=queries,
        queries_per_op=queries / ops if ops else None,
        wait_us_per_query=totals["wait_time"] / queries if queries else None,
        query_us_per_query=totals["query_time"] / queries if queries else None,
        polls=sum(raw["pooler"]["polls"] for raw in known),
        **_pool([raw["pooler"]["pools"] for raw in known]),
    )


def _pool(pools: Sequence[Raw]) -> dict[str, Any]:
    ends = {f"{name}_{end.__name__}": [pool[name] for pool in pools if name in pool] for name, end in _POOL}
    found: dict[str, Any] = {}
    for (_, end), (name, pairs) in zip(_POOL, ends.items(), strict=True):
        found[name] = end(value for pair in pairs for value in pair) if pairs else None
    return {**found, "pool_mode": next((pool["mode"] for pool in pools if pool), None)}


def _statements(raws: Iterable[Raw], rows: int | None, notes: dict[str, str]) -> StatementCounters | None:
    """Calls and rows per operation as the server counted them.

    Differences from the expected go to `notes`.
    """
    known = [raw for raw in raws if raw["statements"]]
    ops = sum(raw["ops"] for raw in known)
    counted = _added((name, value) for raw in known for name, value in raw["statements"].items())
    if not ops or counted["calls"] <= 0:
        if known:
            notes["statements"] = (
                "the server counted no statement of this variant's login; is compute_query_id off, "
                "or does the pooler log in as another role?"
            )
        return None
    per_op = {"calls_per_op": counted["calls"] / ops, "rows_per_op": counted["rows"] / ops}
    calls = known[0]["calls_expected"]
    wrong = _differences(per_op, {"calls_per_op": calls, "rows_per_op": rows})
    as_expected: bool | None = None if calls is None else not wrong
    if wrong and counted["others"] > 0:
        as_expected = None
        others = "1 other session" if counted["others"] == 1 else f"{counted['others']} other sessions"
        wrong.append(f"{others} of this login ran statements during the slices")
    if wrong:
        notes["statements"] = "; ".join(wrong)
    return StatementCounters(per_op["calls_per_op"], per_op["rows_per_op"], as_expected)


def _differences(found: Mapping[str, float], expected: Mapping[str, int | None]) -> list[str]:
    return [
        f"{name.removesuffix('_per_op')}: {found[name]:.3f} per operation, expected {wanted}"
        for name, wanted in expected.items()
        if wanted is not None and abs(found[name] - wanted) > _EQUAL
    ]
