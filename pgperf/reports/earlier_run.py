"""Is it slower than before? A run set against the run before it, in a sentence for its answer."""

from collections.abc import Collection, Iterable, Sequence

from django.utils.translation import gettext as _

from pgperf.analysis.change_points import LEAST_AFTER, LEAST_BEFORE
from pgperf.analysis.outcome import DIFFERS, EQUIVALENT
from pgperf.analysis.run_comparison import OVER, TIME, Change, changes
from pgperf.models import ChangePoint, Run, VariantResult
from pgperf.reports import number_format
from pgperf.reports.compared_run import all_stored
from pgperf.reports.comparisons import outcome_text
from pgperf.reports.labels import layer_title, variant_title
from pgperf.runs.change_text import day

#: The fewest runs in which there may be a change.
LEAST_RUNS = LEAST_BEFORE + LEAST_AFTER
ByMeasure = dict[tuple[str, str], Change]


def found(before: Run, after: Run, labels: Collection[str]) -> ByMeasure:
    """How the variants of `after` with these labels differ from the run before, by label and measure;
    decided among all of its variants, as on the page that compares the two.
    """
    earlier, later = all_stored([before, after])
    told = changes(earlier.levels, later.levels, labels)
    return {(change.variant.label, change.measure): change for change in told}


def sentence(change: Change, before: Run) -> str:
    """Whether one variant became slower; two that changed alike have equal sentences."""
    names = {"run": _("%(run)s of %(date)s") % {"run": before, "date": day(before)}}
    if change.outcome == EQUIVALENT:
        return _("As fast as %(run)s.") % names
    if change.outcome != DIFFERS:
        return _inconclusive(change) % names
    return (_("Slower than %(run)s.") if change.ratio.centre > 1 else _("Faster than %(run)s.")) % names


def _inconclusive(change: Change) -> str:
    if change.is_doubted:
        return _("Inconclusive: a disturbance may explain the difference from %(run)s.")
    if change.may_be_chance:
        return _("Inconclusive: among so many comparisons, the difference from %(run)s can be chance.")
    return _("Inconclusive: the intervals are too wide to set it against %(run)s.")


def evidence(row: VariantResult, by_measure: ByMeasure) -> str:
    """The times of both runs, and the ratio to the layer below all others, which a slower machine
    leaves as it is.
    """
    time, over = by_measure[row.label, TIME], by_measure.get((row.label, OVER))
    told = [
        _("%(after)s instead of %(before)s %(unit)s (%(ratio)s, 95 %% interval %(interval)s)")
        % _numbers(time)
    ]
    if over and over.base:
        relative = _("relative to %(base)s %(after)s instead of %(before)s (%(outcome)s)")
        told.append(relative % _relative(over, layer_title(over.base.layer)))
    return f"{variant_title(row)}: {'; '.join(told)}"


def answer(change: Change) -> str:
    """The times of both runs and whether they differ, in one sentence."""
    if change.is_doubted:
        outcome = _("inconclusive because a disturbance may explain it")
    elif change.outcome != DIFFERS:
        outcome = outcome_text(change.outcome)
    else:
        outcome = _("slower") if change.ratio.centre > 1 else _("faster")
    text = _(
        "%(variant)s: %(after)s instead of %(before)s %(unit)s (%(ratio)s, 95 %% interval %(interval)s),"
        " %(outcome)s."
    )
    return text % {**_numbers(change), "variant": variant_title(change.variant), "outcome": outcome}


def _numbers(change: Change) -> dict[str, str]:
    ratio = change.ratio
    return {
        **number_format.in_one_unit(before=change.before, after=change.after),
        "ratio": number_format.ratio(ratio.centre),
        "interval": number_format.ratio_interval(ratio.low, ratio.high),
    }


def _relative(change: Change, base: str) -> dict[str, str]:
    ends = {"before": number_format.ratio(change.before), "after": number_format.ratio(change.after)}
    return {**ends, "base": base, "outcome": outcome_text(change.outcome)}


def largest(rows: Sequence[VariantResult], by_measure: ByMeasure) -> VariantResult:
    """Of these rows, the one whose time changed most."""
    return max(rows, key=lambda row: abs(by_measure[row.label, TIME].ratio.centre - 1))


def no_change(count: int) -> str:
    """That none lasted in so many runs; "" if these are too few to look for one."""
    return _("None of the last %d runs began a lasting change.") % count if count >= LEAST_RUNS else ""


def newest(changes: Iterable[ChangePoint], labels: Collection[str]) -> ChangePoint | None:
    """Of the changes in these variants, that of the newest run; of several, the largest."""
    own = (each for each in changes if each.label in labels)
    return max(own, key=lambda each: (each.run_id, abs(each.after_us - each.before_us)), default=None)
