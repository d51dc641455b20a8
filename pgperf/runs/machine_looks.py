"""Looks at the machines that measure: asked for, taken by a worker, stored with their results.

A row of MachineLook is a request and its answer. An older row than VALID_S says nothing of now, and
the next request deletes it.
"""

from datetime import timedelta

from django.db import router
from django.db.models import Q, QuerySet
from django.db.models.expressions import CombinedExpression
from django.utils import timezone

from pgperf.analysis.machine_look import MachineLook as Look
from pgperf.core.exceptions import BrokerUnreachable, RunConflict
from pgperf.db.now import Now
from pgperf.models import MachineLook
from pgperf.runs import broker, state

#: For so long a request waits for a worker. One that is asked again meanwhile is the same.
WAIT_S = 20
#: A worker that took a request answers within this time, also where it hardly gets a CPU.
LATEST_S = 45
#: For so long an answer says what a run on that machine will reach.
VALID_S = 900
_REASON_CHARACTERS = 300


def ask(queue: str) -> MachineLook:
    """Ask a worker of the queue to look; the request that is waiting, if there is one.

    Raises RunConflict while pgperf is paused or all workers execute runs, and BrokerUnreachable.
    """
    if state.pause():
        raise RunConflict("pgperf is paused: no worker checks its machine before the pause ends")
    if busy := state.runs_of_all_workers():
        names = " or ".join(f"run {run.pk}" for run in busy)
        raise RunConflict(f"no worker is free to check its machine: wait until {names} has ended")
    if waiting := _waiting().filter(queue=queue).first():
        return waiting
    _forget_old()
    row = _rows().create(queue=queue, asked_at=Now())
    try:
        broker.send_look(row.pk, queue)
    except BrokerUnreachable:
        row.delete()
        raise
    return row


def is_waiting() -> bool:
    """Is there a request that a worker may still take, or one that a worker has taken and will
    answer?
    """
    return _waiting().exists()


def newest_request() -> MachineLook | None:
    """The newest request of a page, answered or not, unless it is old."""
    return _young().exclude(queue="").order_by("-pk").first()


def claim(row_id: int, worker: str) -> bool:
    """Take a request; False if it is answered, taken or too old."""
    return bool(_waiting().filter(pk=row_id, host="").update(host=state.this_machine(), worker=worker))


def begin_here() -> MachineLook:
    """A request that this process, no worker, takes itself."""
    _forget_old()
    return _rows().create(asked_at=Now(), host=state.this_machine())


def answer(row_id: int, found: Look) -> None:
    """Store what a machine showed."""
    _rows().filter(pk=row_id).update(findings=found.to_json(), taken_at=Now())


def refuse(row_id: int, reason: str) -> None:
    """Store why there is no look."""
    _rows().filter(pk=row_id).update(refusal=reason[:_REASON_CHARACTERS], taken_at=Now())


def newest_of_workers() -> MachineLook | None:
    """The newest answer with findings from a machine of a worker that is online, unless it is old."""
    online = state.live_workers().values_list("hostname", flat=True)
    hosts = _rows().filter(worker__in=[*online]).values_list("host", flat=True)
    return _found().filter(host__in=[*hosts]).first()


def valid_here() -> MachineLook | None:
    """The newest answer from this machine, unless it is old."""
    return _found().filter(host=state.this_machine()).first()


def age_s(row: MachineLook) -> float:
    """How old an answer is."""
    assert row.taken_at
    return max(0.0, (timezone.now() - row.taken_at).total_seconds())


def _forget_old() -> None:
    _rows().filter(asked_at__lt=_ago(VALID_S)).delete()


def _found() -> QuerySet[MachineLook]:
    answered = _young().filter(taken_at__isnull=False, refusal="")
    return answered.order_by("-taken_at", "-pk")


def _young() -> QuerySet[MachineLook]:
    return _rows().filter(asked_at__gte=_ago(VALID_S))


def _waiting() -> QuerySet[MachineLook]:
    untaken = Q(host="", asked_at__gte=_ago(WAIT_S))
    taken = ~Q(host="") & Q(asked_at__gte=_ago(WAIT_S + LATEST_S))
    return _rows().filter(untaken | taken, taken_at=None)


def _ago(seconds: float) -> CombinedExpression:
    return Now() - timedelta(seconds=seconds)


def _rows() -> QuerySet[MachineLook]:
    return MachineLook.objects.using(_using())


def _using() -> str:
    return router.db_for_write(MachineLook)
