"""Putting a verdict to the test: which change would tell, and what its outcome says. Pure.

A test measures the variant and a changed one side by side. Three kinds of change tell: *take away* what is said to
bound it, and the time must fall with it; *add load*, and throughput must grow if nothing is used up and must not if
something is; *add delay* no longer than half of what is said to be latency, and all of it must show.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pgperf.analysis.time_breakdown import ROLES, TimeBreakdown
from pgperf.core.delayed_routes import apart
from pgperf.core.layers import connects

Row = Mapping[str, Any]

LOWER_LAYER, BYPASS_POOLER, LIGHT_STATEMENT = "lower_layer", "bypass_pooler", "light_statement"
ONE_CLIENT, DOUBLE_CLIENTS, ADD_DISTANCE = "one_client", "double_clients", "add_distance"

#: Intervention -> what it does, for people.
TITLES = {
    LOWER_LAYER: "the same statements through libpq, which does next to nothing on the client",
    BYPASS_POOLER: "the same without the pooler",
    LIGHT_STATEMENT: "a statement that asks the server for next to nothing",
    ONE_CLIENT: "one client alone, which waits for nobody's locks",
    DOUBLE_CLIENTS: "twice as many clients",
    ADD_DISTANCE: "a longer way to the server",
}
CONFIRMED, WITHDRAWN, UNDECIDED = "confirmed", "withdrawn", "undecided"

#: Twice the clients give so many times the throughput where nothing is used up, and at most so many where it is.
GROWS, FLAT = 1.6, 1.2
#: A processor that stays so busy with twice the clients was used up.
STILL_BUSY = 0.85
#: Of what was taken away, or added, this share must show in the response time; under the lower one it did not matter.
SHOWS, HIDES = 0.8, 0.4
#: From so much latency on (µs) a delay of half of it can be told from what the delaying itself costs.
LONG_US = 1000.0


@dataclass(frozen=True)
class Outcome:
    """`word`: confirmed, withdrawn or undecided; `evidence` says why, in numbers."""

    word: str
    evidence: str


def choose(word: str, row: Row, *, used_up: bool = False) -> str:
    """The intervention that would tell whether the verdict is right; "" where there is none.

    `used_up`: the verdict says that the resource has nothing left to give, not only that it takes most of the time.
    """
    clients, layer = row.get("clients", 1), row.get("layer", "")
    chosen = {
        "client_cpu": "" if layer == "libpq" else LOWER_LAYER,
        "pooler_cpu": BYPASS_POOLER,
        "pool_queue": BYPASS_POOLER,
        "server_cpu": DOUBLE_CLIENTS if used_up else LIGHT_STATEMENT,
        "server_io": LIGHT_STATEMENT,
        "server_wait": LIGHT_STATEMENT,
        "server_lock": ONE_CLIENT if clients > 1 else "",
        "latency": _of_latency(row),
    }
    return chosen.get(word, "") if connects(layer) else ""


def added_distance_ms(row: Row) -> float:
    """The round trip to add: half of the latency, so that a queue that was taken for latency would hide it."""
    return round((TimeBreakdown.of(row).waits["latency"] or 0.0) / 2000, 1)


def _of_latency(row: Row) -> str:
    long = (TimeBreakdown.of(row).waits["latency"] or 0.0) >= LONG_US
    return ADD_DISTANCE if long and row.get("clients", 1) > 1 else DOUBLE_CLIENTS


def outcome(word: str, intervention: str, own: Row, changed: Row | None) -> Outcome:
    """What a test says of the verdict `word`: `own` is the variant measured anew, `changed` the one beside it."""
    again = (own.get("verdict") or {}).get("word")
    if again in ("disturbed", "unknown", None):
        return Outcome(UNDECIDED, f"measured again it was {again or 'not measured'}")
    if again != word:
        return Outcome(WITHDRAWN, f"measured again it was {again}: {own['verdict']['evidence']}")
    if changed is None or not own.get("us_per_op") or not changed.get("us_per_op"):
        return Outcome(UNDECIDED, f"{TITLES[intervention]}: not measured")
    return _KINDS[intervention](word, intervention, own, changed)


def _taken_away(word: str, intervention: str, own: Row, changed: Row) -> Outcome:
    """The time must fall by what was taken away, and what was taken away must be what it fell by."""
    before, after = _at(word, own), _at(word, changed)
    if before is None or after is None:
        return Outcome(UNDECIDED, f"{TITLES[intervention]}: not seen what it took away")
    removed, fell = before - after, own["us_per_op"] - changed["us_per_op"]
    said = (
        f"{TITLES[intervention]}: {_us(changed['us_per_op'])} instead of {_us(own['us_per_op'])} µs; "
        f"it took away {_us(removed)} of {_us(before)} µs, and the time fell by {_us(fell)} µs"
    )
    if removed < before / 2:
        return Outcome(UNDECIDED, said)
    return Outcome(CONFIRMED if removed / 2 <= fell <= removed * 2 else WITHDRAWN, said)


def _load_added(word: str, intervention: str, own: Row, changed: Row) -> Outcome:
    """Latency leaves room for twice the clients; a server that is used up does not, stays busy, and is named again."""
    grew = (changed.get("ops_per_s") or 0.0) / own["ops_per_s"] if own.get("ops_per_s") else 0.0
    said = f"{TITLES[intervention]}: {grew:.2f} times the throughput"
    if word == "latency":
        return Outcome(CONFIRMED if grew >= GROWS else WITHDRAWN if grew <= FLAT else UNDECIDED, said)
    if grew >= GROWS:
        return Outcome(WITHDRAWN, said)
    verdict = changed.get("verdict") or {}
    used = _server_side(verdict)
    busy = "not seen" if used is None else f"{used:.0%} busy"
    said = f"{said}, the server's processors {busy}, and the verdict {verdict.get('word') or 'unknown'}"
    stays = grew <= FLAT and (used or 0.0) >= STILL_BUSY and verdict.get("word") == word
    return Outcome(CONFIRMED if stays else UNDECIDED, said)


def _server_side(verdict: Row) -> float | None:
    """How busy the processors were that the server may use: its own, or those of a host that all share."""
    sides = (verdict.get("numbers") or {}).get("utilisation") or {}
    used: float | None = sides.get("server", sides.get("host"))
    return used


def _delay_added(word: str, intervention: str, own: Row, changed: Row) -> Outcome:
    """Nothing hides a delay from who waits for nothing but the way."""
    added = (apart(changed["route"])[1] - apart(own["route"])[1]) * 1000
    rose = changed["us_per_op"] - own["us_per_op"]
    said = f"{TITLES[intervention]}: {_us(added)} µs more of it make an operation {_us(rose)} µs longer"
    shown = rose / added if added else 0.0
    return Outcome(CONFIRMED if shown >= SHOWS else WITHDRAWN if shown <= HIDES else UNDECIDED, said)


_KINDS: dict[str, Callable[[str, str, Row, Row], Outcome]] = {
    LOWER_LAYER: _taken_away,
    BYPASS_POOLER: _taken_away,
    LIGHT_STATEMENT: _taken_away,
    ONE_CLIENT: _taken_away,
    DOUBLE_CLIENTS: _load_added,
    ADD_DISTANCE: _delay_added,
}


def _at(word: str, row: Row) -> float | None:
    time, role = TimeBreakdown.of(row), word.removesuffix("_cpu")
    return time.at(role) if role in ROLES else time.waits[word]


def _us(value: float) -> str:
    return f"{value:,.{0 if abs(value) >= 10 else 1}f}"
