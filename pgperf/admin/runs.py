"""Runs: the list, a run's page, its progress, cancellation and downloads."""

from functools import partial
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.views.main import ChangeList
from django.core.exceptions import PermissionDenied
from django.db import router
from django.db.models import QuerySet
from django.http import (
    HttpRequest,
    HttpResponse,
    HttpResponseNotAllowed,
    HttpResponseRedirect,
    JsonResponse,
)
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from django.urls import URLPattern, path
from django.utils.formats import date_format
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.timezone import template_localtime  # type: ignore[attr-defined]
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from pgperf.access import permissions
from pgperf.admin import audit, compare, downloads, pages, several
from pgperf.admin.access import GroupScopedAdmin
from pgperf.admin.confirm import confirm_view
from pgperf.admin.consequences import deletion_counts
from pgperf.admin.filters import RestrictedFilter
from pgperf.admin.run_notes import RunNotesAdmin
from pgperf.core.client_environment import DEFAULT
from pgperf.core.exceptions import PgperfError, asked_budget_s
from pgperf.models import Benchmark, Run, Schedule
from pgperf.reports import number_format
from pgperf.reports.changed_settings import ChangedSettings, changed_settings
from pgperf.reports.compared_run import previous
from pgperf.reports.confirmation import tested_title
from pgperf.reports.dashboard import Viewer
from pgperf.reports.disturbed import runs_in_doubt
from pgperf.reports.history import longest_other
from pgperf.reports.run_json import live_workers, progress_json, worker_command
from pgperf.reports.run_page import ALL, FIRST, OTHERS, Result, result
from pgperf.reports.several_runs import LEAST, MOST
from pgperf.reports.verdicts import intervention_title
from pgperf.runs import state as run_state
from pgperf.runs.reader import same_reader
from pgperf.runs.seen_changes import changes_up_to

#: Runs in one exported file: each has results of some hundred rows.
_MOST_EXPORTED = 500


#: Fields that lists of runs do not load, and files of many runs neither.
_UNREAD = ("definition", "environment_changes", "timings", "summary")


class RunChangeList(ChangeList):
    """Loads runs without their results, which may be large."""

    def get_queryset(self, request: HttpRequest, *args: Any, **kwargs: Any) -> QuerySet[Run]:
        shown: QuerySet[Run] = super().get_queryset(request, *args, **kwargs)
        # The users may be in another database, which a join cannot reach.
        return shown.defer(*_UNREAD, "environment").prefetch_related("requested_by")

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        self.result_list: list[Run] = list(self.result_list)
        in_doubt = runs_in_doubt([run.pk for run in self.result_list])
        for run in self.result_list:
            run.in_doubt = run.pk in in_doubt  # type: ignore[attr-defined]


class RunAdmin(RunNotesAdmin, pages.StylesheetMixin, GroupScopedAdmin):
    change_list_template = "admin/pgperf/run/change_list.html"
    list_display = ("name", "state", "requested", "notes_summary")
    list_filter = (
        "status",
        "pinned",
        "quick",
        "benchmark_name",
        "database_name",
        ("restricted", RestrictedFilter),
        "requested_at",
    )
    search_fields = ("benchmark_name", "database_name", "worker", "error", "notes")
    date_hierarchy = "requested_at"
    list_per_page = 50
    actions = (
        "compare_runs",
        "export_variants_csv",
        "export_variants_xlsx",
        "export_comparisons_csv",
        "lift_restriction",
    )

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        return [
            path("dashboard/", view(self.dashboard_view), name="pgperf_run_dashboard"),
            path("compare/", view(self.comparison_view), name="pgperf_run_comparison"),
            path(
                "compare/download/<str:name>",
                view(self.comparison_file_view),
                name="pgperf_run_comparison_file",
            ),
            path("<int:run_id>/progress/", view(self.progress_view), name="pgperf_run_progress"),
            path("<int:run_id>/cancel/", view(self.cancel_view), name="pgperf_run_cancel"),
            path("<int:run_id>/download/<str:name>", view(self.download_view), name="pgperf_run_download"),
            path("<int:run_id>/compare/", view(self.compare_view), name="pgperf_run_compare"),
            path("<int:run_id>/confirm/", view(self.confirm_view), name="pgperf_run_confirm"),
            *super().get_urls(),
        ]

    # Permissions

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Run | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Run | None = None) -> bool:
        """An active run cannot be deleted; it must be cancelled first."""
        return super().has_delete_permission(request, obj) and (
            obj is None or obj.status not in run_state.ACTIVE
        )

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Name the runs and count their rows. Django would read all results with their run."""
        if isinstance(objs, QuerySet):
            objs = objs.prefetch_related(None).only("benchmark_name", "status")
        runs = list(objs)
        shown = [format_html('<a href="{}">{}</a>', self._address(run), run) for run in runs]
        may = all(self.has_delete_permission(request, run) for run in runs)
        return shown, deletion_counts(runs), set() if may else {self.opts.verbose_name}, []

    def has_export_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("pgperf.export_run") and self.has_view_permission(request)

    def has_cancel_permission(self, request: HttpRequest, run: Run) -> bool:
        """Users may cancel the runs that they requested."""
        own = run.requested_by_id is not None and run.requested_by_id == request.user.pk
        return (own or request.user.has_perm("pgperf.cancel_run")) and self.has_view_permission(request)

    def has_lift_restriction_permission(self, request: HttpRequest) -> bool:
        return permissions.is_superuser(request.user)

    # Pages

    def get_queryset(self, request: HttpRequest) -> QuerySet[Run]:
        return run_state.with_effective_status(super().get_queryset(request))

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """The run page: progress while the run is active, then its results."""
        if request.method not in ("GET", "HEAD"):
            return HttpResponseNotAllowed(["GET", "HEAD"])
        run = self.get_object(request, object_id)
        if run is None:
            return self._get_obj_does_not_exist_redirect(request, self.opts, object_id)  # type: ignore[attr-defined]
        if not self.has_view_permission(request, run):
            raise PermissionDenied
        return self.run_page(request, run)

    @same_reader()
    def run_page(self, request: HttpRequest, run: Run, **changed: Any) -> HttpResponse:
        context = self._page(request, run) | changed
        return pages.render(self, request, "admin/pgperf/run/page.html", context)

    def dashboard_view(self, request: HttpRequest) -> HttpResponse:
        """The dashboard, for sites whose `app_index_template` shows another page at the index of
        the app. As that index, it is for all who see one of pgperf's models.
        """
        if request.method not in ("GET", "HEAD"):
            return HttpResponseNotAllowed(["GET", "HEAD"])
        if not Viewer.of(request, self.admin_site).models:
            raise PermissionDenied
        context = {"title": gettext("Dashboard")}
        return pages.render(self, request, "admin/pgperf/run/dashboard.html", context)

    def progress_view(self, request: HttpRequest, run_id: int) -> HttpResponse:
        """The JSON that the run page polls every two seconds."""
        if request.method not in ("GET", "HEAD"):
            return HttpResponseNotAllowed(["GET", "HEAD"])
        return JsonResponse(progress_json(self._run(request, run_id), request.user))

    def cancel_view(self, request: HttpRequest, run_id: int) -> HttpResponse:
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        run = self._run(request, run_id)
        if not self.has_cancel_permission(request, run):
            raise PermissionDenied
        try:
            run_state.request_cancel(run)
        except PgperfError as error:
            self.message_user(request, str(error), messages.ERROR)
        else:
            audit.log_changed(
                self, request, run, f"Requested cancellation, definition {audit.short_hash(run)}."
            )
            self.message_user(request, _cancelled(run), messages.SUCCESS)
        return HttpResponseRedirect(pages.url(self, "pgperf_run_change", run.pk))

    def download_view(self, request: HttpRequest, run_id: int, name: str) -> HttpResponseBase:
        if request.method not in ("GET", "HEAD"):
            return HttpResponseNotAllowed(["GET", "HEAD"])
        run = self._run(request, run_id)
        if not self.has_export_permission(request):
            raise PermissionDenied
        response = downloads.download(request, name, run)
        if response.status_code == 200:
            audit.log_all_changed(request, [run], f"Exported {name}.")
        return response

    def compare_view(self, request: HttpRequest, run_id: int) -> HttpResponse:
        """Compare this run with the one that `with` gives."""
        if request.method not in ("GET", "HEAD"):
            return HttpResponseNotAllowed(["GET", "HEAD"])
        may_export = self.has_export_permission(request)
        return compare.compare_page(self, request, self._run(request, run_id), may_export=may_export)

    def comparison_view(self, request: HttpRequest) -> HttpResponse:
        """Compare two to eight runs."""
        if request.method not in ("GET", "HEAD"):
            return HttpResponseNotAllowed(["GET", "HEAD"])
        if not self.has_view_permission(request):
            raise PermissionDenied
        return several.comparison_page(self, request, may_export=self.has_export_permission(request))

    def comparison_file_view(self, request: HttpRequest, name: str) -> HttpResponse:
        if request.method not in ("GET", "HEAD"):
            return HttpResponseNotAllowed(["GET", "HEAD"])
        if not self.has_export_permission(request):
            raise PermissionDenied
        response, runs = several.comparison_file(self.get_queryset(request), request, name)
        audit.log_all_changed(request, runs, f"Exported {name}.")
        return response

    def confirm_view(self, request: HttpRequest, run_id: int) -> HttpResponse:
        """The page that starts a test run for the verdict on one variant."""
        return confirm_view(self, request, self._run(request, run_id))

    # The list

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return RunChangeList

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """The filter and the permission to delete read what is stored."""
        run_state.settle_lost()
        hint = {
            "no_runs": not permissions.visible(Run.objects.all(), request.user).exists(),
            "workers": live_workers(),
            "paused": run_state.pause(),
            "worker_command": worker_command(),
            "dashboard": pages.dashboard_url(self),
        }
        return super().changelist_view(request, {**(extra_context or {}), **hint})

    @admin.display(description=_("run"), ordering="id")
    def name(self, run: Run) -> SafeString:
        """The run and its database."""
        return _two_lines(str(run), run.database_name)

    @admin.display(description=_("status"), ordering="status")
    def state(self, run: Run) -> SafeString:
        """The status, and of an ended run its duration and whether it was much disturbed."""
        status = Run.Status(run.effective)  # type: ignore[attr-defined]
        share = f" {run.progress * 100:.0f} %" if status == Run.Status.RUNNING else ""
        badge = format_html('<span class="pgperf-badge {}">{}{}</span>', status.value, status.label, share)
        duration = self.duration(run) if run.started_at and run.finished_at else ""
        disturbed = gettext("much disturbed") if run.in_doubt else ""  # type: ignore[attr-defined]
        return _two_lines(badge, ", ".join(filter(None, (duration, disturbed))))

    @admin.display(description=_("requested"), ordering="requested_at")
    def requested(self, run: Run) -> SafeString:
        """Time, length and user of the request."""
        when = date_format(template_localtime(run.requested_at), "DATETIME_FORMAT")
        length = gettext("quick") if run.quick else gettext("full")
        return _two_lines(when, ", ".join(map(str, filter(None, (length, run.requested_by)))))

    def duration(self, run: Run) -> str:
        return number_format.unbroken(number_format.between(run.started_at, run.finished_at))

    @admin.action(description=_("Compare two to eight runs"), permissions=["view"])
    def compare_runs(self, request: HttpRequest, queryset: QuerySet[Run]) -> HttpResponse | None:
        runs = list(queryset.order_by("pk").values_list("pk", flat=True)[: MOST + 1])
        if not LEAST <= len(runs) <= MOST:
            self.message_user(request, gettext("Select two to eight runs to compare."), messages.WARNING)
            return None
        return HttpResponseRedirect(pages.url(self, "pgperf_run_comparison") + several.link(runs))

    @admin.action(description=_("Export the variants as CSV"), permissions=["export"])
    def export_variants_csv(self, request: HttpRequest, queryset: QuerySet[Run]) -> HttpResponse | None:
        return self._tables(request, "variants.csv", queryset)

    @admin.action(description=_("Export the variants as XLSX"), permissions=["export"])
    def export_variants_xlsx(self, request: HttpRequest, queryset: QuerySet[Run]) -> HttpResponse | None:
        return self._tables(request, "variants.xlsx", queryset)

    @admin.action(description=_("Export the comparisons as CSV"), permissions=["export"])
    def export_comparisons_csv(self, request: HttpRequest, queryset: QuerySet[Run]) -> HttpResponse | None:
        return self._tables(request, "comparisons.csv", queryset)

    @admin.action(description=_("Lift the restriction"), permissions=["lift_restriction"])
    def lift_restriction(self, request: HttpRequest, queryset: QuerySet[Run]) -> None:
        chosen = list(queryset.filter(restricted=True).prefetch_related(None).only("benchmark_name"))
        runs = Run.objects.using(router.db_for_write(Run)).filter(pk__in=[run.pk for run in chosen])
        runs.update(restricted=False)
        audit.log_all_changed(request, chosen, "Lifted the restriction.")
        text = ngettext(
            "%d run is not restricted any more: all who may see its benchmark and its database see it.",
            "%d runs are not restricted any more: all who may see their benchmark and their database see them.",
            len(chosen),
        )
        self.message_user(request, text % len(chosen), messages.SUCCESS)

    def _tables(self, request: HttpRequest, name: str, queryset: QuerySet[Run]) -> HttpResponse | None:
        """The file of all these runs; a message and no file for too many."""
        if queryset.count() > _MOST_EXPORTED:
            text = gettext("One file has at most %d runs: filter the list, or select fewer.")
            self.message_user(request, text % _MOST_EXPORTED, messages.WARNING)
            return None
        named = queryset.prefetch_related(None).only("benchmark_name")
        audit.log_all_changed(request, named, f"Exported {name}.")
        unread = [field for field in _UNREAD if field != "definition"]  # advice depends on the operation
        return downloads.tables(name, "runs", queryset.defer(None).defer(*unread))

    def _address(self, run: Run) -> str:
        return pages.url(self, "pgperf_run_change", run.pk)

    def _run(self, request: HttpRequest, run_id: int) -> Run:
        """The run, if the user may see it. Raises PermissionDenied before it looks the run up."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        return get_object_or_404(self.get_queryset(request), pk=run_id)

    def _result(self, request: HttpRequest, run: Run) -> Result:
        """The run's answer sets it against the runs before, if the user may see them."""
        visible, shown = self.get_queryset(request), request.GET.get("topics")
        if shown == OTHERS:
            return result(run, shown=OTHERS)
        shown = ALL if shown == ALL else FIRST
        if before := previous(visible, run):
            changes, counted = changes_up_to(run, visible)
            return result(run, before, changes, shown=shown, counted=counted)
        is_first = run.database_id is not None and not run.intervention
        longest = longest_other(run, visible) if is_first else None
        return result(run, shown=shown, is_first=is_first, longest=longest)

    def _changed_settings(self, request: HttpRequest, run: Run) -> ChangedSettings | None:
        return changed_settings(run, self.get_queryset(request))

    def _page(self, request: HttpRequest, run: Run) -> dict[str, Any]:
        progress = progress_json(run, request.user)
        return {
            "title": str(run),
            "run": run,
            "progress": progress,
            "result": self._result(request, run) if progress["terminal"] else None,
            "changed_settings": self._changed_settings(request, run) if progress["terminal"] else None,
            "duration": self.duration(run),
            "chart_js": pages.chart_js(),
            "worker_command": worker_command(),
            "confirms": {
                "variant": tested_title(run),
                "change": intervention_title(run.intervention),
            },
            "may_see_schedule": _may_see_schedule(request, run),
            "startable": partial(_startable, request),
            "asked_budget_s": asked_budget_s(run.error),
            "side_by_side": _side_by_side(run),
            **self.notes_context(request, run),
            "may_cancel": not progress["terminal"] and self.has_cancel_permission(request, run),
            "may_export": progress["terminal"] and self.has_export_permission(request),
            "views_benchmarks": permissions.may_view(request.user, Benchmark),
            "may_start": progress["terminal"]
            and run.benchmark_id is not None
            and request.user.has_perm("pgperf.start_run"),
        }


def _cancelled(run: Run) -> str:
    if run.status == Run.Status.CANCELLED:
        return gettext("Cancelled before it started.")
    return gettext("Cancelling: the run stops within seconds.")


def _side_by_side(run: Run) -> list[str]:
    """The environments that the run compared, which may have been chosen for it alone; none of a run
    in the default one.
    """
    found = (run.definition or {}).get("environments")
    return found if isinstance(found, list) and found != [DEFAULT] else []


def _may_see_schedule(request: HttpRequest, run: Run) -> bool:
    return (
        run.schedule is not None
        and permissions.may_view(request.user, Schedule)
        and permissions.may_see(request.user, run.schedule)
    )


def _startable(request: HttpRequest) -> QuerySet[Benchmark]:
    """The benchmarks that the user may see and start."""
    if not (permissions.may_view(request.user, Benchmark) and request.user.has_perm(permissions.START)):
        return Benchmark.objects.none()
    return permissions.visible(Benchmark.objects.only("name"), request.user)


def _two_lines(first: str, second: str) -> SafeString:
    """A cell of two lines, so that the list fits beside its filter."""
    return format_html('{}<span class="pgperf-under">{}</span>', first, second)
