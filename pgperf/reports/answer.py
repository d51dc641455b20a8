"""A run's answer in a few sentences: what bounds it, what the ORM adds, how sure that is, what to try.

The first topic of a run's page shows it. Each point is a question with its answer and evidence.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice, pairwise

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from pgperf.analysis import verdict_kinds
from pgperf.analysis.disturbances import POOR
from pgperf.analysis.grade import Grade, GradeWord
from pgperf.analysis.ladder import Ladder, Step
from pgperf.analysis.outcome import DIFFERS
from pgperf.analysis.run_comparison import TIME
from pgperf.analysis.samples import ROUNDS
from pgperf.analysis.verdict import LIKELY, WITHDRAWN, Basis, Verdict
from pgperf.core.layers import LAYERS, Rung
from pgperf.core.time_units import unit_of
from pgperf.models import ChangePoint, Run, VariantResult
from pgperf.reports import (
    comparisons,
    earlier_run,
    ladders,
    load_hosts,
    number_format,
    open_loops,
    page_lengths,
    staircases,
    suite,
    verdicts,
)
from pgperf.reports.labels import measured, variant_title
from pgperf.reports.next_steps import remedy, shown_step
from pgperf.reports.run_rows import RunRows, once
from pgperf.reports.table import CAUTION, Note
from pgperf.runs.change_text import sentence

#: Failed consistency checks, and pieces of advice, that the answer lists.
_MOST_CHECKS, _MOST_ADVICE = 3, 3
#: Routes that a sentence names, and those that it names as the only others.
_MOST_NAMES, _FEW_NAMES = 4, 2
#: Steps of a web site that the answer names, sentences on what distance costs, and on rates that
#: were not held; all are in the sections that the answer leads to.
_MOST_STEPS, _MOST_DISTANCES, _MOST_RATES = 3, 2, 3
#: From the best grade to the worst.
_GRADES = (GradeWord.GOOD, GradeWord.UNKNOWN, GradeWord.FAIR, GradeWord.POOR)


@dataclass(frozen=True)
class Point:
    """A question with its answer; `lines` are the evidence. `mark` is "good", "fair" or "poor"
    where the answer is a grade. `anchor`: the section with all of the evidence. `benchmarks`: names
    of those that measure what is advised. `before`: the run that this one is set against, `change`:
    the newest lasting change over the runs.
    """

    question: str
    sentences: tuple[str, ...]
    lines: tuple[Note, ...] = ()
    mark: str = ""
    anchor: str = ""
    benchmarks: tuple[str, ...] = ()
    before: Run | None = None
    change: ChangePoint | None = None

    @property
    def change_text(self) -> str:
        return f"{sentence(self.change)}." if self.change else ""


def points(rows: RunRows) -> list[Point]:
    """The answer, point by point; none for a run without figures."""
    if not rows.variants:
        return []
    parts = (_bounds(rows), _whether_page(rows), _held(rows), _adds(rows), _since(rows))
    return [*chain(*parts), _certainty(rows), *_next(rows)]


@once
def judged(rows: RunRows) -> list[VariantResult]:
    """The variants that the answer is about: over each route that which is nearest to a site."""
    return verdicts.last_of_routes(rows.variants)


# What bounds it


def _bounds(rows: RunRows) -> Iterator[Point]:
    question, limited = _("What bounds it"), tuple(_withheld(rows))
    if rows.is_suite:
        sentences = tuple(verdicts.suite_headlines(rows.variants))
        anchor = "verdicts" if sentences else ""
        yield Point(question, sentences or (_no_verdict(),), limited, anchor=anchor)
        return
    shown = judged(rows)
    groups = _of_one_claim(shown)
    sentences = tuple(_of_routes(_plain(own[0]), own, shown) for own in groups)
    lines = (*_evidence(rows, [own[0].label for own in groups]), *limited)
    yield Point(question, sentences or (_no_verdict(),), lines, anchor="verdicts" if shown else "")


def _of_one_claim(shown: Sequence[VariantResult]) -> list[list[VariantResult]]:
    """The variants in groups of one claim: “A or B” is “B or A”."""
    groups: dict[tuple[str, verdicts.Words], list[VariantResult]] = {}
    for row in shown:
        verdict, text = row.record.verdict, _plain(row)
        named = verdicts.words_of(verdict) if verdict else ()
        alike = text.replace(verdicts.either(verdict), "") if verdict and len(named) > 1 else text
        groups.setdefault((alike, named), []).append(row)
    return list(groups.values())


def _withheld(rows: RunRows) -> Iterator[Note]:
    if text := verdicts.withheld(rows.variants):
        yield Note(text, CAUTION)


def _no_verdict() -> str:
    return _("Not known: this run has no CPU accounts.")


def _evidence(rows: RunRows, labels: Sequence[str]) -> Iterator[Note]:
    """Of the variants with these labels, and the notes of all; those on disturbances belong to another
    question.
    """
    shown, disturbed = verdicts.headlines(rows.variants), verdicts.word_title(verdict_kinds.DISTURBED)
    for each in shown:
        if each.label in labels and each.word != disturbed:
            yield Note(_("%(variant)s: %(evidence)s") % {"variant": each.title, "evidence": each.short})
    yield from dict.fromkeys(n for each in shown for n in each.notes if n.text != each.disturbed_by)


def _plain(row: VariantResult) -> str:
    """The verdict on a variant in plain words, with its certainty."""
    verdict = row.record.verdict
    if verdict is None:
        return _no_verdict()
    claim = _claim(verdict)
    if verdict.certainty == WITHDRAWN:
        return _("A test has withdrawn the verdict %s.") % verdicts.either(verdict)
    certainty = verdicts.certainty_title(verdict.certainty) if verdict.certainty else ""
    return f"{claim} ({certainty})." if certainty else f"{claim}."


def _claim(verdict: Verdict) -> str:
    """Without its full stop."""
    if verdict.lead and verdict.lead.is_open:
        return _("The longest part of the time is %s, and the run does not tell which") % verdicts.either(
            verdict
        )
    if verdict.finding.basis == Basis.NO_FREE_CONNECTION:
        return _("All server connections of the pool are in use, and clients wait for one")
    parts = verdict.numbers.parts_us
    if verdict.word == "client_cpu" and (parts.get("interpreter") or 0.0) > (parts.get("client") or 0.0):
        return _("The client’s work and its workers’ waits for each other take the largest part of the time")
    if verdict.finding.basis == Basis.FAILED_REQUESTS:
        return _("Nothing was measured: each slice had a failed request")
    used_up = verdict.finding.basis == Basis.SATURATED and _used_up().get(verdict.word)
    return used_up or _takes_most().get(verdict.word) or verdicts.word_title(verdict.word)


def _takes_most() -> dict[str, str]:
    return {
        "client_cpu": _("The client’s own work takes the largest part of the time"),
        "server_cpu": _("The server’s own work takes the largest part of the time"),
        "pooler_cpu": _("The pooler’s own work takes the largest part of the time"),
        "proxy_cpu": _("The web proxy’s own work takes the largest part of the time"),
        "web_cpu": _("The web server’s own work, with the view, takes the largest part of the time"),
        "interpreter": _("The workers of a client process wait for each other: they share an interpreter"),
        "web_workers": _("All workers of the web server are busy, and requests wait for one"),
        "network": _("The network of a load host carries as much as it can"),
        "pool_queue": _("The largest part of the time is waiting for a server connection of the pool"),
        "server_lock": _("The largest part of the time is waiting for locks in the server"),
        "server_io": _("The largest part of the time is waiting for the server’s disks"),
        "server_wait": _("The largest part of the time is other waiting in the server"),
        "latency": _(
            "The largest part of the time is waiting between client and server: the network and waking up"
        ),
        "schedule": _(
            "Nothing: it holds the rate that was asked for, and its clients wait for their schedule"
        ),
        "disturbed": _("Not known: other work disturbed the measurement too much"),
        "unknown": _("Not known: figures are missing"),
    }


def _used_up() -> dict[str, str]:
    return {
        "client_cpu": _("The clients’ CPUs are used up"),
        "server_cpu": _("The server’s CPUs are used up"),
        "pooler_cpu": _("The pooler’s CPU is used up"),
        "proxy_cpu": _("The web proxy’s CPUs are used up"),
        "web_cpu": _("The web server’s CPUs are used up"),
    }


# Whether the web servers answered with the page


def _whether_page(rows: RunRows) -> Iterator[Point]:
    """None where the bodies are as long as the page."""
    if told := tuple(page_lengths.cautions(rows)):
        text = _("Perhaps not: the lengths of the answers differ too much.")
        lines = tuple(Note(each, CAUTION) for each in told)
        yield Point(_("Whether it is the page"), (text,), lines, str(GradeWord.POOR), anchor="requests")


# Whether it held its rates


def _held(rows: RunRows) -> Iterator[Point]:
    """None of a run without rates."""
    shown = open_loops.with_rate(measured(rows.variants))
    if not shown:
        return
    told = open_loops.sentences(shown)
    text = ngettext(
        "%(held)d of %(count)d variant with a rate held it.",
        "%(held)d of %(count)d variants with a rate held it.",
        len(shown),
    )
    sentence = text % {"held": len(shown) - len(told), "count": len(shown)}
    yield Point(
        _("Whether rates were held"), (sentence,), tuple(map(Note, told[:_MOST_RATES])), anchor="rate"
    )


# What the ORM, the layers or the steps add


def _adds(rows: RunRows) -> Iterator[Point]:
    """With a caution where the ratios are those of a single block."""
    found = list(_added(rows))
    if found and _has_one_block(rows):
        found[0] = replace(found[0], lines=(*found[0].lines, Note(_of_one_block(), CAUTION)))
    yield from found


def _has_one_block(rows: RunRows) -> bool:
    return {row.sample for row in rows.comparisons} == {ROUNDS}


def _of_one_block() -> str:
    return _(
        "One block was measured. Its rounds alone make the intervals, which do not tell how far another block"
        " would differ."
    )


def _added(rows: RunRows) -> Iterator[Point]:
    if rows.is_suite:
        if told := suite.headlines(suite_settings(rows)):
            lines = tuple(map(Note, told[1:]))
            yield Point(_("How the layers compare"), tuple(told[:1]), lines, anchor="suite")
    else:
        if rows.ladders and not staircases.alone(rows):
            yield from _layers(ladders.first_load(rows.ladders), rows)
        yield from _steps(staircases.found(rows))
    if told := comparisons.workload_headlines(rows.comparisons):
        yield Point(_("Between the workloads"), tuple(told), anchor="comparisons")
    if told := comparisons.environment_headlines(rows.comparisons):
        yield Point(_("What the environment changes"), tuple(told), anchor="comparisons")


@once
def suite_settings(rows: RunRows) -> list[suite.Setting]:
    """Those of a suite, with the one that the verdict is about first."""
    about = {row.pk for row in judged(rows)}
    return sorted(suite.settings(rows), key=lambda each: about.isdisjoint(row.pk for row in each.variants))


def judged_column(rows: RunRows) -> suite.ColumnKey:
    """The layer of the first of these settings that the verdict is about; its last one without a
    verdict.
    """
    first = suite_settings(rows)[0]
    about = {row.pk for row in judged(rows)}
    found = ((row.layer, row.workers) for row in first.variants if row.pk in about)
    return next(found, first.columns[-1])


def _steps(found: Sequence[staircases.Staircase]) -> Iterator[Point]:
    """None of steps that make no difference."""
    told, others = staircases.largest(found, _MOST_STEPS)
    if told:
        text = ngettext(
            "%d more step makes a smaller difference.", "%d more steps make smaller differences.", others
        )
        lines = (Note(text % others),) if others else ()
        yield Point(_("What each step changes"), tuple(told), lines, anchor="staircase")


def _layers(shown: Sequence[Ladder], rows: RunRows) -> Iterator[Point]:
    """None of ladders with one layer each."""
    among = rows.ladders
    pairs = [(ladder, pair) for ladder in shown if (pair := _orm(ladder))]
    found = [(ladder, orm) for ladder, (_cursor, orm) in pairs]
    if not found:
        if sentences := tuple(ladders.headlines(shown, among)):
            yield Point(_("What the layers add"), sentences, anchor="ladder")
        return
    line = Note(_("Over %s.") % ", ".join(_orm_part(*each, among) for each in found))
    sentence = _orm_share(
        [step for _ladder, step in found],
        is_disturbed=_is_disturbed(rows, {step.label for _ladder, pair in pairs for step in pair}),
    )
    if len({ladder.clients for ladder in among}) > 1:
        sentence = f"{ladders.load_title(shown[0])}: {sentence}"
    yield Point(_("What the ORM adds"), (sentence,), (line,), anchor="ladder")


def _is_disturbed(rows: RunRows, labels: Collection[str]) -> bool:
    """Did others much disturb the measurement of one of these variants?"""
    found = (row.record.verdict for row in rows.variants if row.label in labels)
    return any((verdict.grade.others or 0.0) >= POOR for verdict in found if verdict)


def _orm(ladder: Ladder) -> tuple[Step, Step] | None:
    """The rungs of the cursor and of the ORM that stands on it."""
    wanted = (Rung.CURSOR, Rung.ORM)
    return next((pair for pair in pairwise(ladder.steps) if (_rung(pair[0]), _rung(pair[1])) == wanted), None)


def _rung(step: Step) -> Rung | None:
    return LAYERS[step.layer].rung if step.layer in LAYERS else None


def _orm_share(steps: Sequence[Step], *, is_disturbed: bool) -> str:
    """How much of an operation's time raw SQL would save."""
    if not any(step.step_us > 0 for step in steps):
        return _("This run shows no time that the ORM takes: the cursor is as slow.")
    shares = [step.step_us / step.us for step in steps if step.us]
    low, high = (
        number_format.whole(round(100 * end)) for end in (min(shares, default=0), max(shares, default=0))
    )
    share = _("%s %%") % low if low == high else _("%(low)s to %(high)s %%") % {"low": low, "high": high}
    ends = number_format.in_one_unit(**{end.__name__: end(s.step_us for s in steps) for end in (min, max)})
    us = ends["min"] if ends["min"] == ends["max"] else _("%(min)s to %(max)s") % ends
    said = {"us": us, "unit": ends["unit"], "share": share}
    if not all(map(_is_certain, steps)):
        return " ".join(_unsure(said, is_disturbed=is_disturbed))
    if is_disturbed:
        text = _(
            "The ORM takes at most %(us)s %(unit)s, %(share)s of the time: waiting for other processes is part"
            " of it."
        )
    else:
        text = _("The ORM takes %(us)s %(unit)s, %(share)s of the time. Raw SQL would save it.")
    return text % said


def _unsure(said: dict[str, str], *, is_disturbed: bool) -> Iterator[str]:
    yield _("The ORM seems to take %(us)s %(unit)s, %(share)s of the time.") % said
    if is_disturbed:
        yield _("Waiting for other processes is part of it.")
    yield _("The intervals are too wide to tell what raw SQL would save.")


def _is_certain(step: Step) -> bool:
    """Is the step known to within half of it?"""
    low, high = step.step_low_us, step.step_high_us
    return low is not None and high is not None and step.step_us / 2 <= low <= high <= step.step_us * 3 / 2


def _orm_part(ladder: Ladder, step: Step, among: Sequence[Ladder]) -> str:
    unit, ends = unit_of([step.us, step.step_us]), (step.step_low_us, step.step_high_us)
    return _("%(route)s %(us)s of %(of)s %(unit)s (95 %% interval %(interval)s)") % {
        "route": ladders.ladder_title(ladder, among),
        **number_format.in_one_unit(us=step.step_us, of=step.us),
        "interval": number_format.in_unit(unit, number_format.interval, *ends),
    }


# Whether it became slower


def _since(rows: RunRows) -> Iterator[Point]:
    """What the answer is about, set against the run before, with the last change that lasted; of a
    suite that change only.
    """
    if rows.before is None:
        return
    sentences, lines = ((), ()) if rows.is_suite else _beside(rows.before, rows)
    change = earlier_run.newest(rows.changes, _concerned(rows))
    if sentences or change:
        yield Point(_("Against the run before"), sentences, lines, before=rows.before, change=change)


def _beside(before: Run, rows: RunRows) -> tuple[tuple[str, ...], tuple[Note, ...]]:
    """Sentences and evidence; none of runs without a judged variant in common."""
    changes = earlier_run.found(before, rows.run)
    shown = [row for row in judged(rows) if (row.label, TIME) in changes]
    groups = _grouped((earlier_run.sentence(changes[row.label, TIME], before), row) for row in shown)
    sentences = tuple(_of_routes(text, own, shown) for text, own in groups.items())
    lines = (Note(earlier_run.evidence(earlier_run.largest(shown, changes), changes)),) if shown else ()
    return sentences, lines


def _concerned(rows: RunRows) -> set[str]:
    """The labels of the variants that the answer is about, and of the layers below, whose steps are
    part of their times; all of a suite.
    """
    if rows.is_suite:
        return {row.label for row in rows.originals}
    labels = {row.label for row in judged(rows)}
    rungs = [{step.label for step in ladder.steps} for ladder in rows.ladders]
    return labels.union(*(each for each in rungs if labels & each))


# How sure that is


def _certainty(rows: RunRows) -> Point:
    """The grade of the least certain variant that the answer is about, and what else limits it."""
    shown = measured(rows.variants) if rows.is_suite else judged(rows)
    worst = _worst(shown)
    lost = (Note(text, CAUTION) for text in load_hosts.lost(rows))
    said = map(Note, filter(None, (*_disturbances(*worst), " ".join(_limits(rows, shown)))))
    lines = (*lost, *said)
    anchor = "verdicts" if worst[0] else ""
    if failed := verdicts.failed_checks(rows.variants):
        lines = (*map(Note, _first(failed)), Note(_graded(worst[1])), *lines)
        return Point(_("How sure"), (_failed(len(failed)),), lines, str(GradeWord.POOR), anchor)
    return Point(_("How sure"), (_graded(worst[1]),), lines, str(worst[1].word), anchor)


def _first(failed: Sequence[str]) -> Iterator[str]:
    """A few of the checks that failed, and how many more the verdicts list."""
    yield from failed[:_MOST_CHECKS]
    yield from _more(len(failed) - _MOST_CHECKS)


def _more(count: int) -> Iterator[str]:
    """How many more the verdicts list; nothing where there are none."""
    if count > 0:
        yield (
            ngettext("%d more is listed with the verdicts.", "%d more are listed with the verdicts.", count)
            % count
        )


def _worst(rows: Sequence[VariantResult]) -> tuple[VariantResult | None, Grade]:
    """The most disturbed variant with its grade; None where none has one."""
    graded = [(row, verdict.grade) for row in rows if (verdict := row.record.verdict)]
    return max(graded, key=lambda each: _rank(each[1]), default=(None, Grade()))


def _rank(grade: Grade) -> tuple[int, float]:
    known = list(map(str, _GRADES))
    return known.index(grade.word) if grade.word in known else 1, grade.share or 0.0


def _graded(grade: Grade) -> str:
    texts = {
        GradeWord.GOOD: _("The measurement is undisturbed"),
        GradeWord.FAIR: _("The measurement is slightly disturbed"),
        GradeWord.POOR: _("The measurement is much disturbed"),
    }
    text = texts.get(GradeWord(grade.word)) if grade.word in set(GradeWord) else None
    if text is None:
        return _("How undisturbed the measurement was is not known.")
    if grade.share is None:
        return f"{text}."
    if grade.share < verdicts.LEAST_SHARE:
        return _("%s: others took less than 0.1 %% of the time.") % text
    names = {"text": text, "share": number_format.percent(grade.share)}
    if grade.others != grade.share:
        return _("%(text)s: all disturbances took at most %(share)s of the time.") % names
    return _("%(text)s: others took at most %(share)s of the time.") % names


def _disturbances(row: VariantResult | None, grade: Grade) -> Iterator[str]:
    if row is not None and grade.word in (GradeWord.FAIR, GradeWord.POOR):
        names = {"variant": variant_title(row), "by": verdict_kinds.grade_sentence(grade)}
        yield _("%(variant)s: %(by)s") % names if names["by"] else ""


def _limits(rows: RunRows, shown: Sequence[VariantResult]) -> Iterator[str]:
    if rows.run.quick:
        yield _("The run was a quick one: a full run has narrower intervals.")
    if controls := [row for row in rows.comparisons if row.aa]:
        yield _controls(sum(row.outcome == DIFFERS for row in controls), len(controls))
    if any(verdict.certainty == LIKELY for row in shown if (verdict := row.record.verdict)):
        yield _("Likely means: no test run has confirmed it yet.")


def _controls(outside: int, count: int) -> str:
    """Of variants that were measured twice."""
    if not outside:
        text = ngettext(
            "%d variant was measured twice as a control: no false difference.",
            "%d variants were measured twice as controls: no false difference.",
            count,
        )
        return text % count
    return _("%(outside)d of %(count)d variants that were measured twice as controls show a false difference.") % {
        "outside": outside, "count": count,
    }  # fmt: skip


def _failed(count: int) -> str:
    text = ngettext(
        "%d consistency check failed. Do not trust the figures until you know why.",
        "%d consistency checks failed. Do not trust the figures until you know why.",
        count,
    )
    return text % count


# What to do next


def _next(rows: RunRows) -> Iterator[Point]:
    question = _("What to do next")
    if rows.is_suite:
        yield Point(question, (_next_of_suite(rows),), anchor="suite")
        return
    shown = judged(rows)
    told = {row.pk: shown_step(row, rows.variants) for row in shown}
    groups = _grouped((told[row.pk].advice, row) for row in shown if told[row.pk].advice)
    sentences, lines = [], []
    for advice, own in islice(groups.items(), _MOST_ADVICE):
        saving = told[own[0].pk].saving
        sentences.append(_of_routes(" ".join(filter(None, (advice, saving))), own, shown))
        lines += [Note(_("The saving is that of %s.") % own[0].route)] if saving and len(own) > 1 else []
    lines += map(Note, _more(len(groups) - _MOST_ADVICE))
    distances = (_of_routes(text, [row], shown) for row in shown for text in told[row.pk].distances)
    sentences += islice(distances, _MOST_DISTANCES)
    if sentences:
        names = dict.fromkeys(chain.from_iterable(told[row.pk].benchmarks for row in shown))
        yield Point(question, tuple(sentences), tuple(lines), anchor="verdicts", benchmarks=tuple(names))


def _next_of_suite(rows: RunRows) -> str:
    """The ratios of a much disturbed run are no advice."""
    _row, worst = _worst(measured(rows.variants))
    if worst.word == GradeWord.POOR:
        return remedy(worst)
    return _("Open Layers, and read the row of the workload that is most like yours.")


def _grouped(pairs: Iterable[tuple[str, VariantResult]]) -> dict[str, list[VariantResult]]:
    groups: dict[str, list[VariantResult]] = {}
    for text, row in pairs:
        groups.setdefault(text, []).append(row)
    return groups


def _of_routes(text: str, own: Sequence[VariantResult], shown: Sequence[VariantResult]) -> str:
    """The sentence, with the routes that it is about where others are shown too."""
    if len(own) == len(shown):
        return text
    return _("%(routes)s: %(text)s") % {"routes": _routes(own, shown), "text": text}


def _routes(own: Sequence[VariantResult], shown: Sequence[VariantResult]) -> str:
    """Their names; of many, their number, or the names of the few others."""
    names, others = ([row.route for row in rows] for rows in (own, [row for row in shown if row not in own]))
    if len(names) <= _MOST_NAMES:
        return ", ".join(names)
    if len(others) <= _FEW_NAMES:
        return _("All routes but %s") % ", ".join(others)
    return _("%(own)d of %(all)d routes") % {"own": len(own), "all": len(shown)}
