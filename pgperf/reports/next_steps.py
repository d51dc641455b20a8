"""What to try next after a verdict, as a sentence with the expected saving; what distance costs."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from pgperf.analysis.grade import Grade, Source
from pgperf.analysis.next_step import NO_SAVINGS, Advice, Distance, NextStep, Savings, next_step, setting
from pgperf.analysis.variant_summary import VariantSummary
from pgperf.analysis.verdict import Verdict
from pgperf.analysis.verdict_kinds import DISTURBED
from pgperf.core.limits import LEAST_BLOCKS
from pgperf.core.records import BUDGET, CONNECTIONS, ENDING, Ending, with_workloads
from pgperf.models import Run, VariantResult
from pgperf.reports import number_format
from pgperf.reports.labels import layer_title

#: Of the conditions of a login, those that keep it safe.
_LOGIN = ("authentication", "tls")


@dataclass(frozen=True)
class ShownStep:
    """The advice for a variant as people read it; each "" or empty where there is none.

    `besides`: advice on connections beside the main one. `distances`: sentences on what delays of its
    route cost. `benchmarks`: names of other benchmarks than the run's that measure what is advised.
    `repeats`: it is to measure the same again.
    """

    advice: str = ""
    saving: str = ""
    besides: str = ""
    distances: tuple[str, ...] = ()
    benchmarks: tuple[str, ...] = ()
    repeats: bool = False

    @property
    def text(self) -> str:
        """All of it; "" where there is no advice."""
        return self.after(self.advice)

    def after(self, advice: str) -> str:
        """The rest of it, after the advice in other words."""
        return " ".join(filter(None, (advice, self.saving, self.besides, *self.distances)))


def shown_step(row: VariantResult, rows: Iterable[VariantResult], savings: Savings = NO_SAVINGS) -> ShownStep:
    """The advice for a variant among the rows of its run."""
    found = _shown(row.record, _next_step(row, rows, savings))
    return replace(
        found, benchmarks=tuple(each for each in found.benchmarks if each != row.run.benchmark_name)
    )


def shown_steps(rows: Sequence[VariantResult], savings: Savings = NO_SAVINGS) -> list[ShownStep]:
    """The advice for each of a run's variants, without the benchmarks that measure it."""
    return [_shown(row.record, found) for row, found in zip(rows, _next_steps(rows, savings), strict=True)]


def next_steps_json(rows: Sequence[VariantResult], savings: Savings) -> list[dict[str, Any] | None]:
    """`next_step` of the JSON of each of a run's variants; None where there is no advice."""
    return [_json(row.record, found) for row, found in zip(rows, _next_steps(rows, savings), strict=True)]


def _next_steps(rows: Sequence[VariantResult], savings: Savings) -> Iterator[NextStep | None]:
    """Each row is set against those beside it only: of many variants, few are."""
    beside: dict[tuple[Any, ...], list[VariantResult]] = {}
    for row in rows:
        beside.setdefault(setting(row.record), []).append(row)
    for row in rows:
        yield _next_step(row, beside[setting(row.record)], savings)


def _next_step(row: VariantResult, rows: Iterable[VariantResult], savings: Savings) -> NextStep | None:
    others = [other.record for other in _alternatives(row, rows)]
    return next_step(
        row.record, others, savings=savings, copies=_copies(row), time_was_up=_time_was_up(row.run)
    )


def _time_was_up(run: Run) -> bool:
    """Did the run end by its budget before the block that has the diagnostic slices?"""
    ending = Ending.from_json(run.environment.get(ENDING))
    asked = (run.definition or {}).get("diagnostic_ms")
    return bool(asked and ending and ending.reason == BUDGET and ending.blocks < LEAST_BLOCKS)


def _copies(row: VariantResult) -> bool:
    """Is the operation a COPY?"""
    works = with_workloads(row.run.definition)["workloads"]
    kinds = {work["name"]: (work.get("bulk") or {}).get("kind") for work in works}
    return kinds.get(row.workload) == "copy"


def _alternatives(row: VariantResult, rows: Iterable[VariantResult]) -> list[VariantResult]:
    """Without those whose route has another login or encryption: what that saves is no advice."""
    logins = row.run.environment.get(CONNECTIONS) or {}
    return [other for other in rows if not _logs_in_otherwise(logins.get(row.route), logins.get(other.route))]


def _logs_in_otherwise(own: Mapping[str, Any] | None, other: Mapping[str, Any] | None) -> bool:
    """Is it known of both, and not alike?"""
    return bool(own and other) and any((own or {}).get(each) != (other or {}).get(each) for each in _LOGIN)


def _json(record: VariantSummary, found: NextStep | None) -> dict[str, Any] | None:
    """`us` of `of_us` was saved by a faster variant if `measured`, else it is the most that can be."""
    if found is None:
        return None
    return {
        "advice": str(found.advice),
        "text": _shown(record, found).text,
        "changes": dict(found.changes),
        "us": found.us,
        "of_us": found.of_us,
        "measured": found.is_measured,
        "benchmark": found.benchmark or None,
        "distances": [_distance_json(each) for each in found.distances],
    }


def _distance_json(found: Distance) -> dict[str, Any]:
    return {
        "route": found.route,
        "ms": found.ms,
        "us": found.us,
        "cost_us": found.cost_us,
        "times": found.times,
    }


def _shown(record: VariantSummary, found: NextStep | None) -> ShownStep:
    if found is None or record.verdict is None:
        return ShownStep()
    return ShownStep(
        advice=_advice(found, record.verdict),
        saving=_saving(found, is_disturbed=record.verdict.word == DISTURBED),
        besides=_besides(found.connecting_us, record.us_per_op),
        distances=tuple(map(_distance, found.distances)),
        benchmarks=found.benchmarks,
        repeats=found.advice == Advice.QUIET,
    )


def _besides(connecting_us: float | None, of_us: float | None) -> str:
    """Both times are on the page too, so the sentence gives both."""
    if connecting_us is None or not of_us:
        return ""
    numbers = number_format.differences_in_one_unit({"of": of_us}, us=connecting_us)
    return _("Keep connections open, too: connecting and closing take %(us)s of %(of)s %(unit)s.") % numbers


def _distance(found: Distance) -> str:
    """The times are given too, so that their difference and their quotient can be seen."""
    return _(
        "In this run %(ms)s ms of simulated network delay cost %(cost)s %(unit)s: %(us)s instead of"
        " %(near)s %(unit)s, %(times)s."
    ) % {
        "ms": number_format.tick(found.ms),
        **number_format.differences_in_one_unit({"us": found.us, "near": found.near_us}, cost=found.cost_us),
        "times": number_format.ratio(found.times),
    }


def _advice(found: NextStep, verdict: Verdict) -> str:
    if found.advice == Advice.ALTERNATIVE:
        return "; ".join(_change(name, value) for name, value in found.changes)
    if found.advice == Advice.GRANT:
        return _("Let the run’s login see the server’s sessions: %s.") % verdict.finding.grant
    if found.advice == Advice.FIGURES:
        return _("Make these figures known, then measure again: %s.") % ", ".join(verdict.finding.missing)
    if found.advice == Advice.QUIET:
        return _quieter(verdict)
    return _(_SENTENCES[found.advice]) if found.advice in _SENTENCES else ""


_SENTENCES: dict[str, str] = {
    Advice.KEEP_CONNECTIONS: gettext_noop(
        "Keep connections open: connecting and closing take half of the time or more."
    ),
    Advice.CLIENT_CODE: gettext_noop(
        "Do less in the client: fetch fewer rows or columns, take dictionaries instead of objects, or a faster"
        " driver."
    ),
    Advice.CLIENT_ROWS: gettext_noop("Do less in the client: fetch fewer rows or columns."),
    Advice.STATEMENT: gettext_noop(
        "Look at the statement with EXPLAIN: its work in the server is the largest part of the time."
    ),
    Advice.PREPARE: gettext_noop(
        "Look at the statement with EXPLAIN: its work in the server is the largest part of the time. Or send it"
        " prepared, so that it is not planned each time."
    ),
    Advice.COPY: gettext_noop(
        "Give the server less to do for each row: fewer indexes, constraints and triggers on the table."
    ),
    Advice.ROUND_TRIPS: gettext_noop(
        "Make fewer round trips: fewer statements per request, or a server that is nearer to its clients."
    ),
    Advice.PAGE_ROUND_TRIPS: gettext_noop(
        "Make fewer round trips: fewer statements for each page, or servers that are nearer to each other."
    ),
    Advice.POOL: gettext_noop("Increase the size of the pool, or use fewer clients at the same time."),
    Advice.PROCESSES: gettext_noop(
        "Use several processes instead of workers in one: they do not share a GIL or an event loop."
    ),
    Advice.CLIENT_CPUS: gettext_noop("Give the clients more CPUs, or run fewer of them at the same time."),
    Advice.SERVER_CPUS: gettext_noop(
        "Give the server more CPUs, or reduce the work of each statement (EXPLAIN shows it)."
    ),
    Advice.POOLER: gettext_noop("Run several poolers, or leave the pooler out where connections persist."),
    Advice.PROXY: gettext_noop(
        "Let the proxy do less: fewer filters, no compression of short pages, kept connections."
    ),
    Advice.VIEW: gettext_noop(
        "Do less in the view and the template: fewer objects, fewer fields, a cached part."
    ),
    Advice.WEB_CPUS: gettext_noop("Give the web server more CPUs, or reduce the work of the view."),
    Advice.WEB_WORKERS: gettext_noop(
        "Start more workers of the web server: each is busy with a request, and requests wait for one."
    ),
    Advice.NETWORK: gettext_noop(
        "Spread the load over more load hosts, or let each operation read less: the network is saturated."
    ),
    Advice.LOCKS: gettext_noop("Hold locks for a shorter time: the clients wait for each other."),
    Advice.DISKS: gettext_noop("Read less from disk: an index, fewer columns, or more shared_buffers."),
    Advice.REQUESTS: gettext_noop(
        "See the table of requests for the reasons why they failed, fix the cause, and measure again."
    ),
    Advice.TIME: gettext_noop(
        "Give the run a larger time budget or fewer variants: its time was up before the diagnostic slices, which"
        " divide the waiting."
    ),
    Advice.RATE: gettext_noop("Ask for a higher rate, or a closed loop, to see the bottleneck."),
    Advice.SERVER_WAITS: gettext_noop(
        "See which wait event the server’s sessions are in, in the table of diagnostics."
    ),
}


def _change(name: str, value: str) -> str:
    texts = {
        "layer": _("Use %s instead."),
        "mode": _("Send %s statements."),
        "route": _("Take the route %s."),
        "connect": _("Use connections of the mode %s."),
    }
    shown = {"layer": layer_title(value), "route": value}
    return texts[name] % shown.get(name, value.replace("_", " "))


def remedy(grade: Grade) -> str:
    """What to do about the largest disturbance of a run."""
    largest = max(grade.disturbances, key=lambda each: each.us or 0.0, default=None)
    source = largest.source if largest else Source.STEAL
    texts: dict[str, str] = {
        Source.THROTTLING: _("Give its control group a larger CPU quota, and run it again."),
        Source.CLOCK: _("Choose a clock source of the CPU’s own, such as tsc, and run it again."),
    }
    return texts.get(source, _("Run it again when the machine is quieter."))


def _quieter(verdict: Verdict) -> str:
    """The evidence of the verdict names the programs."""
    if any(each.programs for each in verdict.grade.disturbances):
        return _("Measure again when the other work on the machine has ended.")
    return _("Measure again at a quieter time, or on a machine that others use less.")


def _saving(found: NextStep, *, is_disturbed: bool = False) -> str:
    """The expected saving of a change; "" where no figure bounds it. In a disturbed measurement,
    others may have a part in a measured one, so the sentence has what is sure too.
    """
    if found.us is None or not found.of_us:
        return ""
    figures = {"of": found.of_us}
    numbers = number_format.differences_in_one_unit(figures, us=found.us, least=found.least_us or 0.0)
    if found.is_measured and (is_disturbed or found.is_vague):
        return _("In this run that saved %(us)s of %(of)s %(unit)s (at least %(least)s).") % numbers
    if found.is_measured:
        return _("In this run that saved %(us)s of %(of)s %(unit)s.") % numbers
    bound = _("At most %(us)s of %(of)s %(unit)s can be saved.") % numbers
    return f"{bound} {_not_measured()}" if found.is_unmeasured else bound


def _not_measured() -> str:
    return _("No benchmark of pgperf measures that saving: compare a run after the change with this one.")
