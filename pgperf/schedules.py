"""Starts the runs of schedules that are due, as their owners.

Celery beat or cron asks, as often as it likes and from as many processes. A due time is taken by
one conditional UPDATE, in the transaction that queues the run, so it starts one run at most.
Nothing is caught up: of the times that passed, only the last one counts, and only for GRACE. Times
are the database's.
"""

import logging
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, tzinfo
from typing import Any

from django.apps import apps
from django.conf import settings
from django.db import InterfaceError, OperationalError, router, transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from pgperf.access import permissions
from pgperf.core.exceptions import PgperfError
from pgperf.db.now import Now
from pgperf.models import Run, Schedule
from pgperf.runs import state

logger = logging.getLogger(__name__)

Outcome = Schedule.Outcome
#: How late a run may still start.
GRACE = timedelta(minutes=30)
#: `django.contrib.admin.models.ADDITION`, which only a site with the admin can import.
_ADDITION = 1
#: Of a stored reason, which people of any language read.
_SHOWN_TIME = "%Y-%m-%d %H:%M"


@dataclass(frozen=True)
class Handled:
    """What came of one due time. `reason`: why no run started, or which times were skipped."""

    schedule: Schedule
    outcome: Outcome
    reason: str = ""
    run: Run | None = None


def start_due() -> list[Handled]:
    """Start what is due; what this call dealt with. Raises OperationalError or InterfaceError while
    the database is down.
    """
    return [handled for schedule in _due() if (handled := _handle(schedule))]


def plan(schedule: Schedule, *, same_times: bool = False) -> None:
    """Set the next due time of a saved schedule. `same_times`: those from before the save, so a run
    that is due still starts.
    """
    found = _with_now(_rows().filter(pk=schedule.pk)).get()
    if not (same_times and _is_due(found)):
        _rows().filter(pk=schedule.pk).update(due_at=_next_of(found) if found.enabled else None)
    schedule.refresh_from_db(fields=["due_at"], using=_using())


def overdue(schedules: QuerySet[Schedule]) -> QuerySet[Schedule]:
    """Those of them that are due for so long that nothing seems to look for due schedules."""
    return schedules.filter(enabled=True, due_at__lt=Now() - GRACE)


def zone() -> tzinfo:
    """The site's time zone."""
    return timezone.get_default_timezone()


def _due() -> list[Any]:
    """Those that are due, and those without a due time, each with the database's time `now`."""
    wanted = Q(due_at__isnull=True) | Q(due_at__lte=Now())
    return list(_with_now(_rows().filter(wanted, enabled=True)).order_by("due_at", "pk"))


def _is_due(schedule: Any) -> bool:
    due = schedule.due_at
    return bool(schedule.enabled and due and _aware(due) <= _aware(schedule.now))


def _handle(schedule: Any) -> Handled | None:
    """None where the schedule was not due after all, or another process was faster."""
    try:
        if schedule.due_at is None or _last_of(schedule) < _aware(schedule.due_at):
            _take(schedule)  # it is new, or its times changed
            return None
        with transaction.atomic(using=_using()):
            return _start(schedule) if _take(schedule, last_due_at=_stored(_last_of(schedule))) else None
    except (OperationalError, InterfaceError):  # the database is down, for every schedule
        raise
    except Exception as error:  # one schedule must not stop the others
        logger.exception("%s", schedule)
        with suppress(ValueError):  # times that no form accepts
            _rows().filter(pk=schedule.pk).update(last_due_at=_stored(_last_of(schedule)))
        return _note(schedule, Handled(schedule, Outcome.REFUSED, f"pgperf failed ({type(error).__name__})."))


def _take(schedule: Schedule, **fields: Any) -> bool:
    """Move the schedule to its next due time: one caller succeeds."""
    same = _rows().filter(pk=schedule.pk, enabled=True, due_at=schedule.due_at)
    return bool(same.update(due_at=_next_of(schedule), **fields))


def _start(taken: Any) -> Handled:
    """Ask for the run of a time that this process has taken, or say why not."""
    schedule = _rows().select_related("benchmark", "database").get(pk=taken.pk)
    if _is_late(taken) and _tried_at(taken) == _last_of(taken):
        return Handled(schedule, Outcome(schedule.outcome), schedule.reason)  # pgperf failed in time
    skip = _skip(taken)
    handled = Handled(schedule, Outcome.SKIPPED, skip) if skip else _request(schedule)
    reason = " ".join(filter(None, (handled.reason, _skipped_before(taken))))
    return _note(schedule, replace(handled, reason=reason))


def _is_late(taken: Any) -> bool:
    return _aware(taken.now) - _last_of(taken) > GRACE


def _tried_at(taken: Any) -> datetime | None:
    """The last due time that a process took, or failed to."""
    return _aware(taken.last_due_at) if taken.last_due_at else None


def _skip(taken: Any) -> str:
    """Why no run is asked for this time; "" if one is."""
    if _is_late(taken):
        minutes = int(GRACE.total_seconds() // 60)
        return f"Nothing looked for due schedules within {minutes} minutes after the time."
    if state.pause():
        return "pgperf was paused."
    runs = Run.objects.using(router.db_for_write(Run)).filter(schedule=taken.pk, status__in=state.ACTIVE)
    for run in state.with_effective_status(runs):
        if run.effective in state.ACTIVE:  # type: ignore[attr-defined]
            return f"Run {run.pk} of this schedule was still {run.get_status_display()}."
    return ""


def _skipped_before(taken: Any) -> str:
    since, last = _aware(taken.due_at), _last_of(taken)
    if since >= last:
        return ""
    first, end = (each.astimezone(zone()).strftime(_SHOWN_TIME) for each in (since, last))
    tried = _tried_at(taken)
    why = "pgperf failed" if tried and tried >= since else "nothing looked for due schedules"
    return f"The times from {first} to before {end} were skipped: {why}."


def _request(schedule: Schedule) -> Handled:
    """Ask for the run as the owner, who may have lost the permission since."""
    if refusal := permissions.owner_refusal(schedule):
        return Handled(schedule, Outcome.REFUSED, f"{refusal[0].upper()}{refusal[1:]}.")
    try:
        with transaction.atomic(using=_using()):
            run = state.request(
                schedule.benchmark,
                schedule.database,
                quick=schedule.quick,
                user=permissions.owner(schedule),
                token=f"schedule-{schedule.pk}-{schedule.last_due_at:%Y%m%dT%H%M}",
                confirmed=schedule.confirmed_name,
                note=lambda run: _sign(run, schedule),
            )
    except PgperfError as error:
        return Handled(schedule, Outcome.REFUSED, str(error))
    return Handled(schedule, Outcome.STARTED, run=run)


def _sign(run: Run, schedule: Schedule) -> None:
    """Say on the run, and in its history in the admin, that the schedule started it."""
    run.schedule, run.scheduled_for = schedule, schedule.last_due_at
    run.save(update_fields=["schedule", "scheduled_for"], using=_using())
    if apps.is_installed("django.contrib.admin"):
        text = f"Requested by {schedule} for its owner, definition {run.definition_hash[:12]}."
        entries: Any = apps.get_model("admin.LogEntry").objects
        entries.log_actions(schedule.owner_id, [run], _ADDITION, change_message=text)


def _note(schedule: Schedule, handled: Handled) -> Handled:
    _rows().filter(pk=schedule.pk).update(outcome=handled.outcome, reason=handled.reason[:500])
    logger.info("%s: %s %s", schedule, handled.outcome, handled.reason)
    return handled


def _last_of(schedule: Any) -> datetime:
    return schedule.timetable(zone()).last_until(_aware(schedule.now))


def _next_of(schedule: Any) -> datetime:
    return _stored(schedule.timetable(zone()).next_after(_aware(schedule.now)))


def _aware(moment: datetime) -> datetime:
    """As a site without USE_TZ stores no zone."""
    return timezone.make_aware(moment, zone()) if timezone.is_naive(moment) else moment


def _stored(moment: datetime) -> datetime:
    return moment if settings.USE_TZ else timezone.make_naive(moment, zone())


def _with_now(rows: QuerySet[Schedule]) -> QuerySet[Any]:
    return rows.annotate(now=Now())


def _rows() -> QuerySet[Schedule]:
    return Schedule.objects.using(_using())


def _using() -> str:
    return router.db_for_write(Schedule)
