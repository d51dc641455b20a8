"""The times at which a benchmark runs by itself."""

from datetime import tzinfo
from typing import Any, ClassVar

from django.conf import settings
from django.db import models
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from pgperf.core.timetable import EVERY_HOURS, Timetable
from pgperf.db import fields, validators
from pgperf.models.benchmark import Benchmark
from pgperf.models.database import Database


def _every(hours: int) -> Any:
    if hours == 24:
        return _("once a day")
    return _("every hour") if hours == 1 else format_lazy(_("every {hours} hours"), hours=hours)


class Schedule(models.Model):
    """The times at which a benchmark runs by itself on a database, as its owner.

    Only pgperf.schedules starts what is due, and writes `due_at` and the fields after it.
    """

    hidden_with: ClassVar[tuple[str, ...]] = ("benchmark", "database")

    class Outcome(models.TextChoices):
        NONE = "", _("not due yet")
        STARTED = "started", _("started")
        SKIPPED = "skipped", _("skipped")
        REFUSED = "refused", _("refused")

    benchmark = models.ForeignKey(
        Benchmark, models.CASCADE, related_name="schedules", verbose_name=_("benchmark")
    )
    database = models.ForeignKey(
        Database, models.CASCADE, related_name="schedules", verbose_name=_("database")
    )
    quick = models.BooleanField(_("quick"), default=False, help_text=_("A shorter run with wider intervals."))
    days = models.JSONField(
        _("days"), default=list, blank=True, validators=[validators.day_list], help_text=_("None: every day.")
    )
    at = models.TimeField(
        _("at"),
        validators=[validators.whole_minute],
        help_text=_("Hours and minutes in the site's time zone, for example 03:15."),
    )
    every_hours = models.PositiveSmallIntegerField(
        _("every"),
        default=24,
        choices=[(hours, _every(hours)) for hours in EVERY_HOURS],
        help_text=_("The other times of a day are these hours before and after that time."),
    )
    enabled = models.BooleanField(_("enabled"), default=True)
    #: db_constraint=False: the user model may live in another database. Null: the user was deleted.
    owner = fields.UserField(
        settings.AUTH_USER_MODEL,
        null=True,
        blank=True,
        editable=False,
        db_constraint=False,
        related_name="+",
        verbose_name=_("owner"),
    )
    #: The name that the owner typed for a production Database; each start checks it again.
    confirmed_name = models.CharField(max_length=60, blank=True, editable=False)
    #: No time before it is due. Null: the schedule is off, or new.
    due_at = models.DateTimeField(_("next due"), null=True, blank=True, editable=False, db_index=True)
    #: The last time that was due, and what came of it.
    last_due_at = models.DateTimeField(_("last due"), null=True, blank=True, editable=False)
    outcome = models.CharField(
        _("outcome"), max_length=10, choices=Outcome.choices, default=Outcome.NONE, blank=True, editable=False
    )
    reason = models.CharField(_("reason"), max_length=500, blank=True, editable=False)

    class Meta:
        verbose_name = _("schedule")
        verbose_name_plural = _("schedules")
        ordering = ["id"]

    def __str__(self) -> str:
        """Without the names of other rows, which not every reader of a log may see."""
        return f"{self._meta.verbose_name} {self.pk}"

    def timetable(self, zone: tzinfo) -> Timetable:
        return Timetable(zone, self.at, tuple(self.days), self.every_hours)
