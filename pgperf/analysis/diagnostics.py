"""What the server said of a variant in its diagnostic slices: wait events, the pooler's and the statements' figures.

`block.diagnostics` is what the runner saw. Counts of all slices of a variant are added before anything is divided.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pgperf.core.layers import calls_orm
from pgperf.core.records import VariantBlock

#: What a backend waits for that waits for nothing: it runs, or is ready to run.
CPU = "CPU"
_EVENTS_SHOWN = 5
#: Calls and rows per operation count as equal up to this: nothing but our own slice is counted, so they are exact.
_EQUAL = 1e-6
#: Name in a pool's counts, and which of its ends says something.
_POOL = (
    ("cl_active", max),
    ("cl_waiting", max),
    ("sv_active", max),
    ("sv_idle", min),
    ("maxwait_us", max),
)

Raw = Mapping[str, Any]


def rows_expected(blocks: Iterable[VariantBlock]) -> dict[str, int]:
    """Workload -> the rows of one operation, as a layer below the ORM reads them; objects are no rows."""
    return {
        block.variant.workload: block.rows_per_op
        for block in blocks
        if block.rows_per_op and not calls_orm(block.variant.layer)
    }


def diagnostics(blocks: Iterable[VariantBlock], rows: int | None = None) -> dict[str, Any]:
    """The diagnostics of one variant from its blocks; empty where it had no diagnostic slice.

    `rows` are those expected of one operation; None: nobody knows.
    """
    raws = [block.diagnostics for block in blocks if block.diagnostics]
    if not raws:
        return {}
    sights = _sights(raws)
    notes = {name: why for raw in raws for name, why in raw["notes"].items()}
    ticks = sum(raw.get("samples", 0) for raw in raws)
    found = {
        "backends": sights.total() / ticks if ticks and sights else None,
        "wait_events": _shares(_by_kind(sights)),
        "events": _most(_by_event(sights), sights.total()),
        "states": _shares(_by_state(sights)),
        "pooler": _pooler(raws),
        "statements": _statements(raws, rows, notes),
    }
    return {
        "seconds": sum(raw["seconds"] for raw in raws),
        "samples": sights.total(),
        **found,
        "notes": notes,
    }


def _sights(raws: Iterable[Raw]) -> Counter[tuple[str, str, str]]:
    """Nothing where some session had no state: what it does may not be seen, so nobody knows the shares of all."""
    seen: Counter[tuple[str, str, str]] = Counter()
    for raw in raws:
        for state, kind, event, times in raw["sessions"]:
            seen[state, kind, event] += times
    return seen if all(state for state, _, _ in seen) else Counter()


def _by_kind(sights: Counter[tuple[str, str, str]]) -> Counter[str]:
    return _added((kind or CPU, times) for (_, kind, _), times in sights.items())


def _by_event(sights: Counter[tuple[str, str, str]]) -> Counter[str]:
    return _added((f"{kind}:{event}", times) for (_, kind, event), times in sights.items() if kind)


def _by_state(sights: Counter[tuple[str, str, str]]) -> Counter[str]:
    return _added((state, times) for (state, _, _), times in sights.items())


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


def _pooler(raws: Iterable[Raw]) -> dict[str, Any] | None:
    """PgBouncer's totals over the slices, per query and per operation, and the ends of what its pool held."""
    known = [raw for raw in raws if raw["pooler"]]
    if not known:
        return None
    totals = _added((name, value) for raw in known for name, value in raw["pooler"]["totals"].items())
    queries, ops = totals["query_count"], sum(raw["ops"] for raw in known)
    return {
        "queries": queries,
        "queries_per_op": queries / ops if ops else None,
        "wait_us_per_query": totals["wait_time"] / queries if queries else None,
        "query_us_per_query": totals["query_time"] / queries if queries else None,
        **_pool([raw["pooler"]["pools"] for raw in known]),
        "polls": sum(raw["pooler"]["polls"] for raw in known),
    }


def _pool(pools: Sequence[Raw]) -> dict[str, Any]:
    ends = {f"{name}_{end.__name__}": [pool[name] for pool in pools if name in pool] for name, end in _POOL}
    found: dict[str, Any] = {}
    for (_, end), (name, pairs) in zip(_POOL, ends.items(), strict=True):
        found[name] = end(value for pair in pairs for value in pair) if pairs else None
    return {**found, "pool_mode": next((pool["mode"] for pool in pools if pool), None)}


def _statements(raws: Iterable[Raw], rows: int | None, notes: dict[str, str]) -> dict[str, Any] | None:
    """Calls and rows per operation as the server counted them. What is odd about them goes to the notes."""
    known = [raw for raw in raws if raw["statements"]]
    ops = sum(raw["ops"] for raw in known)
    counted = _added((name, value) for raw in known for name, value in raw["statements"].items())
    if not ops or counted["calls"] <= 0:
        if known:
            notes["statements"] = (
                "the server counted no statement of this variant's login; is compute_query_id off, "
                "or does the pooler log in as somebody else?"
            )
        return None
    per_op = {"calls_per_op": counted["calls"] / ops, "rows_per_op": counted["rows"] / ops}
    calls = known[0]["calls_expected"]
    wrong = _differences(per_op, {"calls_per_op": calls, "rows_per_op": rows})
    as_expected: bool | None = None if calls is None else not wrong
    if wrong and counted["others"] > 0:
        as_expected = None
        wrong.append(f"{counted['others']} other sessions of this login worked meanwhile")
    if wrong:
        notes["statements"] = "; ".join(wrong)
    return {**per_op, "as_expected": as_expected}


def _differences(found: Mapping[str, float], expected: Mapping[str, int | None]) -> list[str]:
    return [
        f"{name.removesuffix('_per_op')}: {found[name]:.3f} per operation, expected {wanted}"
        for name, wanted in expected.items()
        if wanted is not None and abs(found[name] - wanted) > _EQUAL
    ]
