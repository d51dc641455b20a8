"""The LoadShare rows, one for each load host of a run."""

from collections.abc import Sequence
from datetime import timedelta

from django.db import IntegrityError, router, transaction
from django.db.models import Q

from pgperf.conf import get_settings
from pgperf.core.exceptions import OrdersLost
from pgperf.db.now import Now
from pgperf.models import LoadShare, Run, Worker
from pgperf.runner.host_slices import MAX_PACKED_BYTES
from pgperf.runs import state
from pgperf.runs.order_rows import OrderRows

#: Of an answer without its numbers: a reply of each client in each slice of a round.
_MAX_ANSWER_CHARACTERS = 16 << 20

_SILENT = "no sign of life: it was killed, or cannot reach this database"

ROWS = OrderRows(LoadShare, "its row", OrdersLost, _MAX_ANSWER_CHARACTERS, MAX_PACKED_BYTES)


def open_for(run: Run, name: str, queue: str) -> int | None:
    """A fresh row for this attempt; None while the host works for another run."""
    try:
        with transaction.atomic(using=router.db_for_write(LoadShare)):
            return ROWS.create(run, name=name, queue=queue, busy_queue=queue)
    except IntegrityError:
        return None


def claim(row_id: int, agent: str, refusal: str = "") -> bool:
    """Take the row for a host: its first sign of life, so that one that dies at once is missed."""
    return ROWS.claim(row_id, agent, refusal, seen_at=Now(), machine=state.this_machine())


def other_run_here(row_id: int) -> Run | None:
    """Another run that measures or makes load on this machine."""
    own = ROWS.all().filter(pk=row_id).values_list("run_id", flat=True).first()
    return state.busy_with(state.this_machine(), own)


def touch(row_id: int, agent: str) -> bool:
    """The host's sign of life. False when the run is over or without one itself.

    It is also that of its worker, which gives none of its own meanwhile: the next run has to find it.
    """
    if not ROWS.live().filter(pk=row_id, agent=agent).update(seen_at=Now()):
        return False
    Worker.objects.using(router.db_for_write(Worker)).filter(hostname=agent).update(last_seen=Now())
    return True


def trouble(row_ids: Sequence[int]) -> tuple[int, str] | None:
    """The first of these rows whose host cannot go on, and why; None while all can.

    Such a host says so, or has been silent for so long that it counts as dead. One query, however
    many hosts there are.
    """
    since = Now() - timedelta(seconds=get_settings().STALE_SECONDS)
    bad = ROWS.all().filter(~Q(refusal="") | Q(seen_at__lt=since), pk__in=row_ids)
    found = bad.order_by("pk").values_list("pk", "refusal").first()
    return (found[0], found[1] or _SILENT) if found else None
