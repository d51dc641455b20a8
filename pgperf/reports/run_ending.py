"""How a run that may stop early ended, in a sentence: the precision, the time, and a remedy."""

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from pgperf.core.records import BUDGET, ENDING, PRECISION, PREDICTED, Ending, Prediction
from pgperf.models import Run
from pgperf.reports.number_format import number, seconds, short_percent

#: Of its budget. A run that used less than this ended because no further block would have fit.
_ALL_USED = 0.95
#: A half-width that says nothing of a ratio.
_NOTHING = 1.0


def sentence(run: Run) -> str:
    """Such as "The ratios are known to ±1.6 % after 58 s.", with a remedy for ratios that are not
    known well enough, and with what a look at the machine predicted; "" for a run of a fixed length,
    or one that failed.
    """
    return _told(run, remedy(run))


def fact(run: Run) -> str:
    """The same without the remedy, for a page whose advice stands elsewhere."""
    return _told(run, "")


def remedy(run: Run) -> str:
    """What gives narrower intervals, to be read after a colon; "" where they are narrow enough."""
    ending = Ending.from_json(run.environment.get(ENDING))
    if ending is None or ending.reason == PRECISION or _is_test(run):
        return ""
    if ending.precision is None:
        return _("run longer.")
    reached = ending.target is None or ending.precision <= ending.target
    return "" if reached and ending.precision < _NOTHING else _remedy(run)


def _told(run: Run, remedy: str) -> str:
    ending = Ending.from_json(run.environment.get(ENDING))
    if ending is None:
        return ""
    if _is_test(run):
        return _of_test(ending, run.definition["blocks"])
    prediction = Prediction.from_json(run.environment.get(PREDICTED))
    return " ".join(filter(None, (_ended(ending, remedy), _predicted(prediction))))


def _is_test(run: Run) -> bool:
    """Of a verdict?"""
    return bool((run.definition or {}).get("ends_after_blocks"))


def _of_test(ending: Ending, blocks: int) -> str:
    """Of a run that tests a verdict: it has no target, and needs all its blocks."""
    used = _used(ending) % _words(ending)
    if ending.blocks >= blocks:
        return f"{used}."
    needed = (
        _("the test needs %d blocks and is inconclusive: try again when the machine is quieter.") % blocks
    )
    return f"{used}; {needed}"


def _ended(ending: Ending, remedy: str) -> str:
    if ending.reason == PRECISION:
        return _("The ratios are known to ±%(precision)s after %(time)s.") % _words(ending)
    told = f"{_used(ending) % _words(ending)}; {_reached(ending)}"
    return f"{told}: {remedy}" if remedy else f"{told}."


def _remedy(run: Run) -> str:
    """What gives narrower intervals. A client and a server that share one CPU do not wake another,
    which takes a time of its own from moment to moment; several clients would wait for each other.
    """
    placed = (run.environment.get("placement") or {}).get("placement")
    asked = run.definition or {}
    if placed == "apart" and list(asked.get("clients", ())) == [1] and asked.get("workers") == 1:
        return _(
            "run longer, on a quieter machine, or with the placement “together” (its ratios are not comparable"
            " with these)."
        )
    return _("run longer or on a quieter machine.")


def _used(ending: Ending) -> str:
    if ending.reason != BUDGET:
        return ngettext(
            "%(blocks)d block measured in %(time)s", "%(blocks)d blocks measured in %(time)s", ending.blocks
        )
    if ending.seconds >= _ALL_USED * ending.budget_s:
        return _("%(budget)s used up")
    return _("%(time)s of %(budget)s used, and another block would not have fit")


def _predicted(prediction: Prediction | None) -> str:
    if prediction is None:
        return ""
    words = {"precision": short_percent(prediction.precision), "time": _time(prediction.seconds)}
    return _("Predicted before the run: about ±%(precision)s in %(time)s.") % words


def _reached(ending: Ending) -> str:
    """The precision of a run that did not end for it."""
    if ending.precision is None:
        return _("the precision is not known")
    if ending.precision >= _NOTHING:
        return _("the ratios are not even known to ±100 %")
    if ending.target is None or ending.precision <= ending.target:
        return _("the ratios are known to ±%(precision)s") % _words(ending)
    return _("the ratios are known to ±%(precision)s, not to ±%(target)s") % _words(ending)


def _apart(precision: float | None, target: float | None) -> tuple[str, str]:
    """Both as percentages; with two decimals where one decimal would make them equal."""
    texts = short_percent(precision), short_percent(target)
    if precision is None or target is None or precision <= target or texts[0] != texts[1]:
        return texts
    return _("%s %%") % number(100 * precision), texts[1]


def _time(value: float) -> str:
    """A budget of 90 s is one in the benchmark's form too."""
    return _("%d s") % round(value) if 10 <= value < 100 else seconds(value)


def _words(ending: Ending) -> dict[str, str | int]:
    precision, target = _apart(ending.precision, ending.target)
    return {
        "precision": precision,
        "target": target,
        "time": _time(ending.seconds),
        "budget": _time(ending.budget_s),
        "blocks": ending.blocks,
    }
