"""What a run will reach in its time, and whether now is a bad moment, by a look at the machine."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from django.utils.translation import gettext as _

from pgperf.analysis.grade import Source
from pgperf.analysis.machine_look import SPEED, MachineLook, Trouble, troubles
from pgperf.core.records import Plan, Prediction
from pgperf.models import MachineLook as Request
from pgperf.reports.number_format import number, seconds, short_percent
from pgperf.reports.run_json import live_workers
from pgperf.runner.prediction import predicted
from pgperf.runs import machine_looks

#: Programs that are named, of those that use this share of a CPU.
_NAMED, _LEAST_CPUS = 3, 0.05


@dataclass(frozen=True)
class Outlook:
    """What the page shows before a run starts.

    `can_ask`: a worker is online, and no request waits. `waiting`: one waits for a worker or for its
    answer. `asked_at`, `trouble`: when the last look was asked for, and why it failed; "" if it did
    not. The rest is of the newest look at a worker's machine; `seen_at` None: there is none of the
    last 15 minutes. `expected`: sentences by the length of the run.
    """

    can_ask: bool
    waiting: bool = False
    asked_at: datetime | None = None
    trouble: str = ""
    seen_at: datetime | None = None
    worker: str = ""
    situation: str = ""
    advice: str = ""
    expected: tuple[tuple[str, str], ...] = ()


def outlook(plans: Mapping[str, Plan]) -> Outlook:
    """Of runs of these plans, by their titles, on the machine of a worker that is online."""
    waiting = machine_looks.is_waiting()
    asked = Outlook(can_ask=not waiting and bool(live_workers()), waiting=waiting)
    row, request = machine_looks.newest_of_workers(), machine_looks.newest_request()
    if request and not request.findings and not waiting and (row is None or request.pk > row.pk):
        asked = replace(asked, asked_at=request.asked_at, trouble=_trouble(request))
    look = MachineLook.from_json(row.findings) if row else None
    if row is None or look is None:
        return asked
    return replace(
        asked,
        seen_at=row.taken_at,
        worker=row.worker,
        situation=situation(look),
        advice=advice(look),
        expected=tuple(expectations(plans, look)),
    )


def _trouble(request: Request) -> str:
    """Why a request that no longer waits has no findings."""
    if request.refusal:
        return request.refusal
    if request.host:
        text = _("The worker %s began the check and gave no answer. Its log may have the reason.")
        return text % request.worker
    return _(
        "No worker took the request within %d s. A worker that executes a run checks its machine after the "
        "run: ask again then."
    ) % (machine_looks.WAIT_S)


def expectations(plans: Mapping[str, Plan], look: MachineLook) -> list[tuple[str, str]]:
    """Title and sentence of each plan whose precision can be predicted."""
    found = {title: predicted(plan, look) for title, plan in plans.items()}
    return [(title, sentence(each)) for title, each in found.items() if each]


def sentence(prediction: Prediction) -> str:
    """Such as "about ±3.1 % in 1 min; ±2 % would take about 2 min 20 s"."""
    words = {"precision": short_percent(prediction.precision), "time": seconds(prediction.seconds)}
    expected = _("about ±%(precision)s in %(time)s") % words
    if prediction.target is None or prediction.reaches_target:
        return expected
    return f"{expected}; {_target(prediction)}"


def situation(look: MachineLook) -> str:
    """Whether now is a bad moment, with the reasons."""
    found = troubles(look)
    if not found:
        return _("The machine is quiet: %s.") % "; ".join(_quiet(look))
    return _("Now is a bad moment: %s.") % "; ".join(_reason(each, look) for each in found)


def advice(look: MachineLook) -> str:
    """What to do in a bad moment; "" in a good one."""
    found = troubles(look)
    if not found:
        return ""
    waiting = _("Wait until this has passed: a run now has wider intervals or takes longer.")
    if all(trouble.source != SPEED for trouble in found):
        return waiting
    steadier = _(
        "With one client, the placement together may have narrower intervals. Its ratios cannot be compared"
        " with those of other placements."
    )
    return f"{waiting} {steadier}"


def _target(prediction: Prediction) -> str:
    target = short_percent(prediction.target)
    if prediction.target_s is None:
        return _("±%s is out of reach here now") % target
    words = {"target": target, "time": seconds(prediction.target_s)}
    return _("±%(target)s would take about %(time)s") % words


def _reason(trouble: Trouble, look: MachineLook) -> str:
    if trouble.source == Source.STEAL:
        return _("the hypervisor takes %s of the CPU time") % short_percent(trouble.share)
    if trouble.source == Source.RUN_QUEUE:
        words = {"share": short_percent(trouble.share), "cpu": trouble.cpu, "programs": _programs(look)}
        return _("other programs%(programs)s use %(share)s of CPU %(cpu)d") % words
    if trouble.source == SPEED:
        words = {"share": short_percent(trouble.share)}
        return _("CPU speed varies, so the time for equal work varies by %(share)s") % words
    assert trouble.us is not None
    return _("a process that wakes up waits %s ms for a CPU") % number(trouble.us / 1000)


def _quiet(look: MachineLook) -> Iterable[str]:
    known = {cpu: share for cpu, share in look.others.items() if share is not None}
    if known:
        cpu = max(known, key=lambda each: known[each])
        words = {"share": short_percent(known[cpu]), "cpu": cpu}
        yield _("other programs use at most %(share)s of a CPU (CPU %(cpu)d)") % words
    if look.steal is not None:
        yield _("the hypervisor takes %s") % short_percent(look.steal)
    yield _("a process that wakes up waits %s ms for a CPU") % number(look.wake_up_us[1] / 1000)
    if look.scatter is not None:
        yield _("the time for equal work varies by %s") % short_percent(look.scatter)


def _programs(look: MachineLook) -> str:
    names = dict.fromkeys(each.name for each in look.programs if each.cpus >= _LEAST_CPUS)
    return f" ({', '.join([*names][:_NAMED])})" if names else ""
