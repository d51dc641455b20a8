"""Schedules: the list with the next time and the last outcome, and the form.

A schedule runs as the user who saved it last, so that no user starts runs with the permissions of
another one.
"""

from datetime import datetime
from typing import Any

from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.db import router
from django.db.models import OuterRef, QuerySet, Subquery
from django.http import HttpRequest
from django.template.response import TemplateResponse
from django.utils.dates import WEEKDAYS
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.timezone import get_default_timezone_name
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from pgperf import schedules
from pgperf.access import permissions
from pgperf.admin import audit, pages
from pgperf.admin.access import GroupScopedAdmin
from pgperf.admin.filters import OutcomeFilter
from pgperf.core.exceptions import PgperfError
from pgperf.core.timetable import DAYS
from pgperf.models import Benchmark, Database, Run, Schedule
from pgperf.reports.schedules import outcome, times
from pgperf.runs import query_access
from pgperf.runs.definitions import Overrides, freeze
from pgperf.runs.state import with_effective_status

_STATE = ("owner", "due_at", "last_due_at", "last_outcome", "last_run")
#: What starts the same runs.
_SAME = ("benchmark", "database", "quick", "at", "every_hours", "days")
#: What the due times follow from.
_TIMES = {"enabled", "at", "every_hours", "days"}
#: What `pgperf.schedules` may write while somebody has the form open.
_OUTCOME = ("due_at", "last_due_at", "outcome", "reason")
_STARTS = ("benchmark", "database", "quick", "enabled")
_OUTCOMES = _(
    "Skipped: pgperf was paused, the schedule's last run had not ended, or nothing looked for due schedules."
    " Refused: the owner may not start the run, or the benchmark cannot run. Either way, pgperf tries again"
    " at the next time."
)


class ScheduleForm(forms.ModelForm):
    """`confirm_name` is typed at each save of a schedule on a production database."""

    #: The user who saves it, and becomes its owner.
    user: Any = None

    days = forms.MultipleChoiceField(
        label=_("Days"),
        choices=[(name, WEEKDAYS[number]) for number, name in enumerate(DAYS)],
        widget=forms.CheckboxSelectMultiple,
        required=False,
        help_text=_("None ticked: every day."),
    )
    confirm_name = forms.CharField(
        label=_("Confirm the database"),
        required=False,
        max_length=60,
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
        help_text=_("Only for a database in production: type its name in pgperf, such as demo."),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, text in _time_helps().items():
            if name in self.fields:  # the user may change the schedule
                self.fields[name].help_text = text

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        benchmark, database = cleaned.get("benchmark"), cleaned.get("database")
        if benchmark and database and cleaned.get("enabled"):
            self._check_name(database, cleaned.get("confirm_name", "").strip())
            self._check_definition(benchmark, database, bool(cleaned.get("quick")))
            self._check_twin(cleaned)
        return cleaned

    def _check_twin(self, cleaned: dict[str, Any]) -> None:
        """A double click on a new one; each would start runs. The admin saves within the transaction
        that checks, so of two clicks at once the second one waits here for the first.
        """
        if self.instance.pk is not None or not cleaned.keys() >= set(_SAME):
            return
        using, same = router.db_for_write(Schedule), {name: cleaned[name] for name in _SAME}
        Benchmark.objects.using(using).select_for_update().filter(pk=same["benchmark"].pk).first()
        if Schedule.objects.using(using).filter(**same, enabled=True).exists():
            self.add_error(None, _("There is an enabled schedule of the same runs at the same times."))

    def _check_name(self, database: Database, typed: str) -> None:
        if database.production and typed != database.name:
            message = _("%s is in production, and each run puts load on it. Type its name to confirm.")
            self.add_error("confirm_name", ValidationError(message % database.name))

    def _check_definition(self, benchmark: Benchmark, database: Database, quick: bool) -> None:
        """What would refuse every run."""
        try:
            definition = freeze(benchmark, database, Overrides(quick=quick))
            query_access.check((work.query for work in definition.workloads), self.user)
        except PgperfError as error:
            self.add_error(None, str(error))

    def _post_clean(self) -> None:
        database = self.cleaned_data.get("database")
        typed = self.cleaned_data.get("confirm_name", "").strip()
        self.instance.confirmed_name = typed if database and database.production else ""
        super()._post_clean()  # type: ignore[misc]


class ScheduleAdmin(pages.StylesheetMixin, GroupScopedAdmin):
    change_list_template = "admin/pgperf/schedule/change_list.html"
    form = ScheduleForm
    list_display = ("benchmark", "database", "times", "owner", "next_due", "last_due")
    list_filter = (
        "enabled",
        ("outcome", OutcomeFilter),
        ("benchmark", admin.RelatedOnlyFieldListFilter),
        ("database", admin.RelatedOnlyFieldListFilter),
    )
    list_select_related = ("benchmark", "database")
    readonly_fields = _STATE
    fieldsets = (
        (None, {"fields": (*_STARTS, "confirm_name")}),
        (_("Times"), {"fields": ("at", "every_hours", "days")}),
    )

    # Permissions

    def has_add_permission(self, request: HttpRequest) -> bool:
        return super().has_add_permission(request) and _may_start(request)

    def has_change_permission(self, request: HttpRequest, obj: Schedule | None = None) -> bool:
        return super().has_change_permission(request, obj) and _may_start(request)

    # The form

    def get_fieldsets(self, request: HttpRequest, obj: Schedule | None = None) -> Any:
        if obj is None:
            return self.fieldsets
        if self.has_change_permission(request, obj):
            return (*self.fieldsets, (_("State"), {"fields": _STATE, "description": _OUTCOMES}))
        return ((None, {"fields": (*_STARTS, "times", *_STATE)}),)

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        form = super().get_form(request, obj, change, **kwargs)
        return type(form.__name__, (form,), {"user": request.user})

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        if db_field.name == "at":
            return db_field.formfield(widget=forms.TimeInput(attrs={"type": "time"}, format="%H:%M"))
        return super().formfield_for_dbfield(db_field, request, **kwargs)

    def save_model(self, request: HttpRequest, obj: Schedule, form: Any, change: bool) -> None:
        former, obj.owner_id = obj.owner, request.user.pk
        if change:
            own = {field.name for field in obj._meta.concrete_fields if not field.primary_key}
            obj.save(update_fields=own - set(_OUTCOME))
        else:
            super().save_model(request, obj, form, change)
        schedules.plan(obj, same_times=change and _TIMES.isdisjoint(form.changed_data))
        if change and former != request.user:
            text = f"Runs as {request.user.get_username()} instead of {former or 'a deleted user'}."
            audit.log_changed(self, request, obj, text)

    # The list

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> TemplateResponse:
        context = {**(extra_context or {}), "outcomes": _OUTCOMES}
        return super().changelist_view(request, context)  # type: ignore[return-value]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Schedule]:
        """With the newest run that the user may see. A join could not reach the users, who may be in
        another database.
        """
        runs = permissions.visible(Run.objects.filter(schedule=OuterRef("pk")), request.user).order_by("-pk")
        if not permissions.may_view(request.user, Run):
            runs = runs.none()
        statuses: QuerySet[Any] = with_effective_status(runs)
        found = super().get_queryset(request).prefetch_related("owner")
        return found.annotate(
            newest_run=Subquery(runs.values("pk")[:1]),
            newest_status=Subquery(statuses.values("effective")[:1]),
        )

    @admin.display(description=_("times"))
    def times(self, schedule: Schedule) -> str:
        length = gettext("quick") if schedule.quick else gettext("full")
        return f"{times(schedule)}, {length}"

    @admin.display(description=_("next due"), ordering="due_at", empty_value="–")
    def next_due(self, schedule: Schedule) -> datetime | str | None:
        return schedule.due_at if schedule.enabled else gettext("disabled")

    @admin.display(description=_("last due"), ordering="last_due_at")
    def last_due(self, schedule: Any) -> SafeString | str:
        """What came of it, and its run."""
        said = outcome(schedule)
        return format_html("{}<br>{}", said, self.last_run(schedule)) if schedule.newest_run else said

    @admin.display(description=_("last outcome"))
    def last_outcome(self, schedule: Schedule) -> str:
        return outcome(schedule)

    @admin.display(description=_("last run"))
    def last_run(self, schedule: Any) -> SafeString | str:
        """Its number and status."""
        if not schedule.newest_run:
            return "–"
        address = pages.url(self, "pgperf_run_change", schedule.newest_run)
        status = Run.Status(schedule.newest_status)
        return format_html(
            '<a href="{}">{}</a> <span class="pgperf-badge {}">{}</span>',
            address, gettext("Run %d") % schedule.newest_run, status.value, status.label,
        )  # fmt: skip


def _time_helps() -> dict[str, str]:
    """Field -> its help, with the site's time zone."""
    at = gettext("Hours and minutes by the clocks of %s (the setting TIME_ZONE), for example 03:15.")
    every = gettext("For example at 09:15, every 6 hours: it runs at 03:15, 09:15, 15:15 and 21:15.")
    return {"at": at % get_default_timezone_name(), "every_hours": every}


def _may_start(request: HttpRequest) -> bool:
    """May the user, who becomes the owner, start what the schedule names? Each due time asks again."""
    return request.user.has_perm(permissions.START) and permissions.may_view(request.user, Benchmark)
