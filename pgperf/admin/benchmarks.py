"""Benchmarks: the list, the form, and the buttons that start a run or clone a benchmark."""

from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.urls import URLPattern, path
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from pgperf.access import permissions
from pgperf.admin import audit, history, pages
from pgperf.admin.estimates import estimate_view
from pgperf.admin.filters import RestrictedFilter
from pgperf.admin.forms import BenchmarkForm
from pgperf.admin.measure import measure_view
from pgperf.admin.proposal import proposed
from pgperf.admin.start_run import start_view
from pgperf.admin.statements import ask_view
from pgperf.admin.transfer import ACCESS, DefinitionAdmin
from pgperf.models import Benchmark, Database, Run
from pgperf.runs.clone import clone
from pgperf.transfer.resources import BenchmarkResource


class BenchmarkAdmin(DefinitionAdmin):
    resource_class = BenchmarkResource
    change_list_template = "admin/pgperf/benchmark/change_list.html"
    change_form_template = "admin/pgperf/benchmark/change_form.html"
    form = BenchmarkForm
    list_display = ("name", "title", "what_runs", "database")
    list_filter = (
        ("workload_links__workload", admin.RelatedOnlyFieldListFilter),
        ("database", admin.RelatedOnlyFieldListFilter),
        "placement",
        ("restricted", RestrictedFilter),
    )
    search_fields = ("name", "title", "description")
    list_select_related = ("database",)
    save_as = True
    actions = ("clone_selected", "export_selected")
    fieldsets = (
        (
            None,
            {"fields": (("name", "title"), "workloads", "database", "routes")},
        ),
        (
            _("Layers, statement modes and clients"),
            {"classes": ("collapse",), "fields": ("layers", "modes", "clients")},
        ),
        (
            _("Connections and processes"),
            {
                "classes": ("collapse",),
                "fields": (
                    "connection_modes",
                    "environments",
                    "rates",
                    "schedule",
                    "latency_limit_ms",
                    "rate_search_ms",
                    "load_hosts",
                    "load_host_names",
                    "may_lose_hosts",
                    "workers",
                    "row_type",
                    "transaction",
                    "bulk_api",
                    "placement",
                    "idle",
                ),
            },
        ),
        (
            _("Duration"),
            {
                "classes": ("collapse",),
                "fields": ("precision", "budget_s", "blocks", "rounds", "slice_ms", "diagnostic_ms"),
            },
        ),
        (
            _("Description and access"),
            {"classes": ("collapse",), "fields": ("description", *ACCESS[1]["fields"])},
        ),
    )

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        form = super().get_form(request, obj, change, **kwargs)
        original = self._original(request) if "_saveasnew" in request.POST else None
        return type(form.__name__, (form,), {"user": request.user, "original": original})

    def exported(self, request: HttpRequest, rows: QuerySet[Any]) -> list[dict[str, Any]]:
        # django-import-export sorts what is prefetched by the primary key, if nothing else is asked.
        rows = rows.select_related("database").order_by("name")
        return super().exported(request, rows.prefetch_related("workload_links__workload"))

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        return [
            path("estimate/", view(self.estimate_view), name="pgperf_benchmark_estimate"),
            path("measure/", view(self.measure_view), name="pgperf_benchmark_measure"),
            path("measure/statements/", view(self.statements_view), name="pgperf_benchmark_statements"),
            path("<int:benchmark_id>/run/", view(self.run_view), name="pgperf_benchmark_run"),
            path("<int:benchmark_id>/clone/", view(self.clone_view), name="pgperf_benchmark_clone"),
            path("<int:benchmark_id>/runs/", view(self.runs_view), name="pgperf_benchmark_runs"),
            path(
                "<int:benchmark_id>/runs/<str:name>",
                view(self.runs_download_view),
                name="pgperf_benchmark_runs_download",
            ),
            *super().get_urls(),
        ]

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        return {**proposed(request.user), **super().get_changeform_initial_data(request)}

    def estimate_view(self, request: HttpRequest) -> HttpResponse:
        """What a run of the form's benchmark would take, as JSON."""
        return estimate_view(self, request)

    def measure_view(self, request: HttpRequest) -> HttpResponse:
        """From a query that exists to its first run."""
        return measure_view(self, request)

    def statements_view(self, request: HttpRequest) -> HttpResponse:
        """POST asks a worker for the statements of a server."""
        return ask_view(self, request)

    def render_change_form(
        self,
        request: HttpRequest,
        context: dict[str, Any],
        add: bool = False,
        change: bool = False,
        form_url: str = "",
        obj: Benchmark | None = None,
    ) -> HttpResponse:
        estimate = {"estimate_url": pages.url(self, "pgperf_benchmark_estimate")}
        return super().render_change_form(request, {**context, **estimate}, add, change, form_url, obj)

    def has_start_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("pgperf.start_run") and self.has_view_permission(request)

    def run_view(self, request: HttpRequest, benchmark_id: int) -> HttpResponse:
        """GET shows the preview; POST starts the run."""
        return start_view(self, request, benchmark_id)

    def has_results_permission(self, request: HttpRequest) -> bool:
        return permissions.may_view(request.user, Run) and self.has_view_permission(request)

    def runs_view(self, request: HttpRequest, benchmark_id: int) -> HttpResponse:
        """The benchmark's results over its runs."""
        if request.method not in ("GET", "HEAD"):
            return HttpResponseNotAllowed(["GET", "HEAD"])
        benchmark = self._with_results(request, benchmark_id)
        may_export = request.user.has_perm("pgperf.export_run")
        may_start = self.has_start_permission(request)
        return history.history_page(self, request, benchmark, may_export=may_export, may_start=may_start)

    def runs_download_view(self, request: HttpRequest, benchmark_id: int, name: str) -> HttpResponse:
        if request.method not in ("GET", "HEAD"):
            return HttpResponseNotAllowed(["GET", "HEAD"])
        benchmark = self._with_results(request, benchmark_id)
        if not request.user.has_perm("pgperf.export_run"):
            raise PermissionDenied
        response = history.download(request, name, benchmark)
        audit.log_all_changed(request, [benchmark], f"Exported {name}.")
        return response

    def _with_results(self, request: HttpRequest, benchmark_id: int) -> Benchmark:
        """The benchmark, if the user may see it and its runs."""
        if not self.has_results_permission(request):
            raise PermissionDenied
        found: Benchmark = get_object_or_404(self.get_queryset(request), pk=benchmark_id)
        return found

    def has_clone_permission(self, request: HttpRequest) -> bool:
        return self.has_add_permission(request) and self.has_view_permission(request)

    def clone_view(self, request: HttpRequest, benchmark_id: int) -> HttpResponse:
        """POST clones the benchmark and redirects to the clone."""
        if not self.has_clone_permission(request):
            raise PermissionDenied
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        benchmark = get_object_or_404(self.get_queryset(request), pk=benchmark_id)
        created = self._clone(request, benchmark)
        self.message_user(request, gettext("This benchmark is a clone of %s.") % benchmark, messages.SUCCESS)
        return HttpResponseRedirect(pages.url(self, "pgperf_benchmark_change", created.pk))

    @admin.action(description=_("Clone selected benchmarks"), permissions=["clone"])
    def clone_selected(self, request: HttpRequest, queryset: QuerySet[Benchmark]) -> None:
        names = [self._clone(request, benchmark).name for benchmark in queryset]
        self.message_user(request, gettext("Cloned: %s.") % ", ".join(names), messages.SUCCESS)

    def _clone(self, request: HttpRequest, benchmark: Benchmark) -> Benchmark:
        created = clone(benchmark)
        audit.log_added(self, request, created, f"Cloned from {benchmark.name}.")
        return created

    def get_list_display(self, request: HttpRequest) -> tuple[Any, ...]:
        name, *rest = self.list_display
        return (name, self.run_link, *rest) if self.has_start_permission(request) else self.list_display

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        hint = {
            "no_benchmarks": not self.get_queryset(request).exists(),
            "no_databases": not permissions.visible(Database.objects.all(), request.user).exists(),
            "may_add_database": request.user.has_perm(permissions.ADD_DATABASE),
        }
        return super().changelist_view(request, {**(extra_context or {}), **hint})

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        may = {
            "may_start": self.has_start_permission(request),
            "may_clone": self.has_clone_permission(request),
            "may_schedule": self.has_start_permission(request)
            and request.user.has_perm("pgperf.add_schedule"),
            "may_see_results": self.has_results_permission(request),
        }
        return super().change_view(request, object_id, form_url, {**(extra_context or {}), **may})

    @admin.display(description=_("compares"))
    def what_runs(self, benchmark: Benchmark) -> str:
        count = len(benchmark.layers)
        words = ngettext("%(layers)d layer over %(routes)s", "%(layers)d layers over %(routes)s", count)
        return words % {"layers": count, "routes": ", ".join(benchmark.routes)}

    @admin.display(description=_("run"))
    def run_link(self, benchmark: Benchmark) -> SafeString:
        address = pages.url(self, "pgperf_benchmark_run", benchmark.pk)
        return format_html(
            '<a class="pgperf-run-link" href="{}" aria-label="{} {}">{}</a>',
            address, gettext("Run benchmark"), benchmark, gettext("Run benchmark"),
        )  # fmt: skip
