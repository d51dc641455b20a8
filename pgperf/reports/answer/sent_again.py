"""What an operation sends again, and what that costs: the statements that a prefetch or a join would
read at once.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from pgperf.core.client_environment import DEFAULT
from pgperf.core.records import CAPTURES, StatementTimes
from pgperf.models import VariantResult
from pgperf.reports import number_format
from pgperf.reports.answer.judged import judged
from pgperf.reports.answer.point import Point
from pgperf.reports.labels import clients_title, layer_title
from pgperf.reports.run_rows import RunRows
from pgperf.reports.short_sql import short_sql
from pgperf.reports.statement_tables import (
    MANY,
    Repeated,
    by_setting,
    repeated,
    stored_times,
    us_of_all_calls,
)
from pgperf.reports.table import Note
from pgperf.reports.verdicts import height

#: Statements that the answer names; the section has all.
_MOST = 2
#: Characters of a statement that fit on a line.
_LINE = 110


@dataclass(frozen=True)
class SentAgain:
    """A statement that one operation of a workload sends several times. `us`: of all its calls, each
    alone in `layer`; None if that was not measured. `whole`: the operation that they are a part of.
    """

    workload: str
    statement: Repeated
    us: float | None = None
    layer: str = ""
    whole: VariantResult | None = None


def points(rows: RunRows) -> Iterator[Point]:
    """None of a run whose operations send each statement less than three times."""
    found = sorted(_found(rows), key=lambda each: -(each.us or 0.0))
    if not found:
        return
    named = len(rows.run.environment.get(CAPTURES, {})) > 1
    loads = {row.identity.connections for row in rows.originals}
    told = found[:_MOST]
    about = " ".join([*_measured(told[0]), *_others(len(found) - len(told))])
    lines = [*(short_sql(each.statement.text, _LINE) for each in told), *filter(None, [about])]
    sentences = tuple(_sentence(each, named=named, of_one_client=len(loads) > 1) for each in told)
    yield Point(_("Repeated statements (N+1)"), sentences, tuple(map(Note, lines)), anchor="captures")


def _found(rows: RunRows) -> Iterator[SentAgain]:
    for name, capture in rows.run.environment.get(CAPTURES, {}).items():
        many = [each for each in repeated(capture) if each.calls >= MANY]
        times = _nearest(rows, name) if many else None
        yield from (_costed(name, each, times, rows) for each in many)


def _nearest(rows: RunRows, workload: str) -> StatementTimes | None:
    """The times of the uppermost layer over a route that the answer is about, else over the first."""
    own = [each for each in stored_times(rows.run.environment) if each.workload == workload]
    routes = {row.route for row in judged(rows)}
    tops = [layers[-1] for layers in by_setting(own)]
    return next((each for each in tops if each.route in routes), tops[0] if tops else None)


def _costed(name: str, each: Repeated, times: StatementTimes | None, rows: RunRows) -> SentAgain:
    if times is None:
        return SentAgain(name, each)
    us = us_of_all_calls(each, {one.numbers[0]: one for one in times.each})
    return SentAgain(name, each, us, times.layer, _whole(rows.originals, times))


def _whole(variants: Sequence[VariantResult], times: StatementTimes) -> VariantResult | None:
    """The uppermost layer that ran the same alone: one client, as the statements had."""
    place = (times.workload, times.route, times.mode)
    known = (row for row in variants if row.us_per_op and (row.workload, row.route, row.mode) == place)
    return max(filter(_is_alone, known), key=lambda row: height(row.identity), default=None)


def _is_alone(row: VariantResult) -> bool:
    plain = row.connect == "persistent" and row.environment == DEFAULT and not row.rate and not row.hosts
    return plain and row.identity.connections == 1


def _sentence(found: SentAgain, *, named: bool, of_one_client: bool) -> str:
    times = _("One statement is sent %d times in one operation") % found.statement.calls
    text = f"{times}: {cost}." if (cost := _cost(found)) else f"{times}."
    load = clients_title(1) if of_one_client and found.us is not None else ""
    about = " · ".join(filter(None, (found.workload if named else "", load)))
    return f"{about}: {text}" if about else text


def _cost(found: SentAgain) -> str:
    """Of the whole, where that is the longer one."""
    if found.us is None:
        return ""
    whole = found.whole.us_per_op if found.whole else None
    if whole is None or whole <= found.us:
        return number_format.time(found.us)
    return _("%(us)s of %(of)s %(unit)s") % number_format.differences_in_one_unit({"of": whole}, us=found.us)


def _measured(found: SentAgain) -> Iterator[str]:
    """What the times are of; nothing where nothing was timed."""
    names = {"layer": layer_title(found.layer)}
    if found.us is not None and found.whole and found.whole.layer != found.layer:
        text = _("Timed alone through %(layer)s; the whole is %(whole)s.")
        yield text % {**names, "whole": layer_title(found.whole.layer)}
    elif found.us is not None:
        yield _("Timed alone through %(layer)s.") % names


def _others(count: int) -> Iterator[str]:
    if count:
        yield (ngettext("%d more statement is repeated.", "%d more statements are repeated.", count) % count)
