"""Interventions: the changes that put a verdict to the test, and what they measure. Pure.

A test measures the variant and a changed one side by side. Five kinds of change tell. *Take away*
what bounds the variant, and the time must fall with it. *Add load*: throughput must grow if nothing
is used up, and must not if something is. *Add processes*, and throughput must grow with them. *Add
delay* of at most half of the latency, and all of it must show. *Move* the view out of the web server,
and its CPU time must move with it.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from pgperf.analysis.number_text import in_one_unit, in_percent
from pgperf.analysis.time_breakdown import TimeBreakdown
from pgperf.analysis.variant_summary import VariantSummary
from pgperf.analysis.verdict import CONFIRMED, UNDECIDED, WITHDRAWN, Finding, MeasuredChange
from pgperf.core.delayed_routes import apart
from pgperf.core.translation import gettext_noop

LOWER_LAYER, BYPASS_POOLER, LIGHT_STATEMENT = "lower_layer", "bypass_pooler", "light_statement"
ONE_CLIENT, DOUBLE_CLIENTS, ADD_DISTANCE = "one_client", "double_clients", "add_distance"
PROCESSES, IN_PROCESS, WEB_PROCESSES = "processes", "in_process", "web_processes"
#: The tests that a request by HTTP allows: it has no statement, no layer below and no delay relay.
OVER_HTTP = (IN_PROCESS, DOUBLE_CLIENTS, ONE_CLIENT, WEB_PROCESSES)

#: Twice the clients give so many times the throughput where nothing is used up, and at most so many
#: where it is.
GROWS, FLAT = 1.6, 1.2
#: As many processes instead of workers give so many times the throughput, at least, where the workers
#: waited for their interpreter, and at most so many where they did not.
FREES, FREES_NOT = 1.2, 1.05
#: A web server with so many times the processes shows what more of them gain.
MORE_PROCESSES = 1.5
#: CPUs that stay so busy with twice the clients were used up.
STILL_BUSY = 0.85
#: Words that say what is used up; the server's CPUs need not be busy too.
_NAMED_AGAIN = ("web_workers", "network", "pooler_cpu")
#: The share of what was added that must show in the response time; under the second one it did not
#: matter.
SHOWS, HIDES = 0.8, 0.4
#: From so much latency on (µs) a delay of half of it is larger than the cost of the delay relay.
LONG_US = 1000.0


@dataclass(frozen=True)
class Intervention:
    """A change: its name, its title, how a test measures it, decides by it and tells it."""

    name: str
    title: str
    measure: Callable[[str, VariantSummary, VariantSummary], MeasuredChange | None]  # by part of the time
    decide: Callable[[str, MeasuredChange], str]  # of a verdict's word: the outcome
    sentence: Callable[[MeasuredChange, str], str]  # with the title of the changed variant's verdict


def added_distance_ms(variant: VariantSummary) -> float:
    """The round trip to add: half of the latency, so that a queue that was taken for latency would
    hide it.
    """
    return round((TimeBreakdown.of(variant).waits["latency"] or 0.0) / 2000, 1)


def no_test(_variant: VariantSummary, _finding: Finding) -> str:
    return ""


def _part_taken_away(part: str, own: VariantSummary, changed: VariantSummary) -> MeasuredChange | None:
    before, after = TimeBreakdown.of(own).of_part(part), TimeBreakdown.of(changed).of_part(part)
    if before is None or after is None:
        return None
    return MeasuredChange(own.us_per_op, changed.us_per_op, before, after)


def _falls_with_the_part(_word: str, found: MeasuredChange) -> str:
    """The time must fall by the part that was taken away."""
    removed, fell = _removed(found), _fell(found)
    if removed < (found.own_part_us or 0.0) / 2:
        return UNDECIDED
    return CONFIRMED if removed / 2 <= fell <= removed * 2 else WITHDRAWN


def _said_of_the_part(found: MeasuredChange, _title: str) -> str:
    changed, own, removed, part, fell, unit = in_one_unit(
        found.changed_us, found.own_us, _removed(found), found.own_part_us, abs(_fell(found))
    )
    how = "fell" if _fell(found) >= 0 else "rose"
    return (
        f"{changed} instead of {own} {unit}; it took away {removed} of {part} {unit}, "
        f"and the time {how} by {fell} {unit}"
    )


def _removed(found: MeasuredChange) -> float:
    return (found.own_part_us or 0.0) - (found.changed_part_us or 0.0)


def _fell(found: MeasuredChange) -> float:
    return (found.own_us or 0.0) - (found.changed_us or 0.0)


def _load_added(part: str, own: VariantSummary, changed: VariantSummary) -> MeasuredChange:
    growth = (changed.ops_per_s or 0.0) / own.ops_per_s if own.ops_per_s else 0.0
    holds_rate = bool(changed.open_loop and changed.open_loop.is_held)
    found = MeasuredChange(own.us_per_op, changed.us_per_op, growth=growth, holds_rate=holds_rate)
    verdict = changed.verdict
    if part == "latency" or verdict is None:
        return found
    return replace(found, server_busy=verdict.numbers.server_side, changed_word=verdict.word)


def _grows_with_processes(_word: str, found: MeasuredChange) -> str:
    growth = found.growth or 0.0
    if growth >= FREES:
        return CONFIRMED
    return WITHDRAWN if growth <= FREES_NOT and not found.holds_rate else UNDECIDED


def _said_of_processes(found: MeasuredChange, _title: str) -> str:
    said = _said_of_the_growth(found)
    changed, own, unit = in_one_unit(found.changed_us, found.own_us)
    return f"{said}, {changed} instead of {own} {unit}"


def _web_processes_added(_part: str, own: VariantSummary, changed: VariantSummary) -> MeasuredChange:
    found = _load_added("latency", own, changed)
    before, after = (each.cpu_account.web_workers if each.cpu_account else None for each in (own, changed))
    return replace(found, own_processes=before, changed_processes=after)


def _grows_with_web_processes(word: str, found: MeasuredChange) -> str:
    """The changed web server must have more of them while it is measured, too."""
    before, after = found.own_processes, found.changed_processes
    has_more = before and after and after >= MORE_PROCESSES * before
    return _grows_with_processes(word, found) if has_more else UNDECIDED


def _said_of_web_processes(found: MeasuredChange, title: str) -> str:
    before, after = ("?" if each is None else each for each in (found.own_processes, found.changed_processes))
    return f"{after} instead of {before}; {_said_of_processes(found, title)}"


def _grows_or_stays(word: str, found: MeasuredChange) -> str:
    """Latency leaves room for twice the clients.

    A used-up server does not, stays busy and is named again; as do a used-up pooler, busy web workers
    and a full network. How many web workers there are is not for pgperf to change, so without a step
    that has more of them, load is all it can add. Clients that do all that their rate asks for could
    do more, by an unknown amount.
    """
    growth = found.growth or 0.0
    if found.holds_rate and growth < GROWS:
        return UNDECIDED
    if word == "latency":
        return CONFIRMED if growth >= GROWS else WITHDRAWN if growth <= FLAT else UNDECIDED
    if growth >= GROWS:
        return WITHDRAWN
    used_up = word in _NAMED_AGAIN or (found.server_busy or 0.0) >= STILL_BUSY
    stays = growth <= FLAT and used_up and found.changed_word == word
    return CONFIRMED if stays else UNDECIDED


def _said_of_the_growth(found: MeasuredChange) -> str:
    rate = " (all that the rate asks for)" if found.holds_rate else ""
    return f"{found.growth or 0.0:.2f} times the throughput{rate}"


def _said_of_the_load(found: MeasuredChange, title: str) -> str:
    said = _said_of_the_growth(found)
    if not found.changed_word:
        return said
    if found.changed_word in _NAMED_AGAIN:
        return f"{said}, and the verdict “{title}”"
    share = found.server_busy
    busy = "busy to an unknown degree" if share is None else f"{in_percent(share)} busy"
    return f"{said}, the server's CPUs {busy}, and the verdict “{title}”"


def _view_moved(_part: str, own: VariantSummary, changed: VariantSummary) -> MeasuredChange | None:
    before, after = TimeBreakdown.of(own).of_part("web"), TimeBreakdown.of(changed).of_part("client")
    if before is None or after is None:
        return None
    word = changed.verdict.word if changed.verdict else ""
    return MeasuredChange(own.us_per_op, changed.us_per_op, before, after, changed_word=word)


def _moves_with_the_view(_word: str, found: MeasuredChange) -> str:
    """The web server's CPU time must be the view's: the client must use most of it in process.

    Else the web server itself may use it, which this test does not measure.
    """
    moved = (found.changed_part_us or 0.0) >= (found.own_part_us or 0.0) / 2
    return CONFIRMED if moved and found.changed_word == "client_cpu" else UNDECIDED


def _said_of_the_view(found: MeasuredChange, _title: str) -> str:
    changed, own, client, web, unit = in_one_unit(
        found.changed_us, found.own_us, found.changed_part_us, found.own_part_us
    )
    return (
        f"in process the view takes {changed} instead of {own} {unit}; "
        f"the client uses {client} {unit} of CPU time, the web server used {web} {unit}"
    )


def _delay_added(_part: str, own: VariantSummary, changed: VariantSummary) -> MeasuredChange:
    added_us = (apart(changed.route)[1] - apart(own.route)[1]) * 1000
    return MeasuredChange(own.us_per_op, changed.us_per_op, added_us=added_us)


def _delay_shows(_word: str, found: MeasuredChange) -> str:
    """Nothing hides a delay from clients that wait for the network only."""
    shown = -_fell(found) / found.added_us if found.added_us else 0.0
    return CONFIRMED if shown >= SHOWS else WITHDRAWN if shown <= HIDES else UNDECIDED


def _said_of_the_delay(found: MeasuredChange, _title: str) -> str:
    added, longer, unit = in_one_unit(found.added_us, abs(_fell(found)))
    how = "longer" if _fell(found) <= 0 else "shorter"
    return f"{added} {unit} more round trip make an operation {longer} {unit} {how}"


def _taking_away(name: str, title: str) -> Intervention:
    return Intervention(name, title, _part_taken_away, _falls_with_the_part, _said_of_the_part)


_ALL = (
    _taking_away(LOWER_LAYER, gettext_noop("the same statements through libpq")),
    _taking_away(BYPASS_POOLER, gettext_noop("the same without the pooler")),
    _taking_away(LIGHT_STATEMENT, gettext_noop("a trivial statement, SELECT 1")),
    _taking_away(ONE_CLIENT, gettext_noop("one client alone")),
    Intervention(
        DOUBLE_CLIENTS,
        gettext_noop("twice as many clients"),
        _load_added,
        _grows_or_stays,
        _said_of_the_load,
    ),
    Intervention(
        PROCESSES,
        gettext_noop("as many processes instead of workers"),
        _load_added,
        _grows_with_processes,
        _said_of_processes,
    ),
    Intervention(
        WEB_PROCESSES,
        gettext_noop("a step whose web server has more processes"),
        _web_processes_added,
        _grows_with_web_processes,
        _said_of_web_processes,
    ),
    Intervention(
        IN_PROCESS,
        gettext_noop("the view in process, without a web server"),
        _view_moved,
        _moves_with_the_view,
        _said_of_the_view,
    ),
    Intervention(
        ADD_DISTANCE,
        gettext_noop("more simulated network delay to the server"),
        _delay_added,
        _delay_shows,
        _said_of_the_delay,
    ),
)
#: Every intervention by its name.
INTERVENTIONS = {each.name: each for each in _ALL}
