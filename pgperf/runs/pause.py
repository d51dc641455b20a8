"""The pause: one row that stops all starts and ends what runs."""

from django.db import IntegrityError, router, transaction

from pgperf.core.exceptions import RunConflict
from pgperf.db.now import Now
from pgperf.models import Pause
from pgperf.runs import state


def begin(by: str, reason: str = "") -> Pause:
    """Pause, and ask what runs to stop. Raises RunConflict when pgperf is paused already."""
    using = router.db_for_write(Pause)
    try:
        with transaction.atomic(using=using):
            Pause(by=by[:150], reason=reason, since=Now()).save(using=using)
            state.cancel_all()
    except IntegrityError:
        raise RunConflict("pgperf is paused already") from None
    found = state.pause()
    assert found
    return found


def end() -> None:
    """Resume; queued runs are sent again. Raises RunConflict when pgperf is not paused."""
    using = router.db_for_write(Pause)
    if not Pause.objects.using(using).all().delete()[0]:
        raise RunConflict("pgperf is not paused")
    transaction.on_commit(state.send_waiting, using=using, robust=True)
