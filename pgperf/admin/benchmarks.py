"""Benchmarks: the list, the form, and the button that starts a run."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from pgperf.admin import pages
from pgperf.admin.forms import BenchmarkForm
from pgperf.admin.start import start_view
from pgperf.models import Benchmark, Database


class BenchmarkAdmin(pages.Styled, admin.ModelAdmin):
    change_list_template = "admin/pgperf/benchmark/change_list.html"
    change_form_template = "admin/pgperf/benchmark/change_form.html"
    form = BenchmarkForm
    list_display = ("name", "title", "what_runs", "database")
    list_filter = ("workload", "database", "placement")
    search_fields = ("name", "title", "description")
    list_select_related = ("workload", "database")
    save_as = True
    fieldsets = (
        (None, {"fields": ("name", "title", "description", "workload", "database")}),
        (_("What is compared"), {"fields": ("layers", "routes", "modes", "clients", "placement", "idle")}),
        (_("How long"), {"fields": ("blocks", "rounds", "slice_ms")}),
    )

    def get_urls(self) -> list[URLPattern]:
        run = path(
            "<int:benchmark_id>/run/", self.admin_site.admin_view(self.run_view), name="pgperf_benchmark_run"
        )
        return [run, *super().get_urls()]

    def has_start_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("pgperf.start_run") and self.has_view_permission(request)

    def run_view(self, request: HttpRequest, benchmark_id: int) -> HttpResponse:
        """The confirm page; POST starts the run."""
        return start_view(self, request, benchmark_id)

    def get_list_display(self, request: HttpRequest) -> tuple[Any, ...]:
        name, *rest = self.list_display
        return (name, self.run_link, *rest) if self.has_start_permission(request) else self.list_display

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        hint = {
            "no_benchmarks": not Benchmark.objects.exists(),
            "no_databases": not Database.objects.exists(),
        }
        return super().changelist_view(request, {**(extra_context or {}), **hint})

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        more = {**(extra_context or {}), "may_start": self.has_start_permission(request)}
        return super().change_view(request, object_id, form_url, more)

    @admin.display(description=_("compares"))
    def what_runs(self, benchmark: Benchmark) -> str:
        return gettext("%(layers)d layers over %(routes)s") % {
            "layers": len(benchmark.layers),
            "routes": ", ".join(benchmark.routes),
        }

    @admin.display(description=_("run"))
    def run_link(self, benchmark: Benchmark) -> SafeString:
        address = pages.url(self, "pgperf_benchmark_run", benchmark.pk)
        return format_html(
            '<a class="pgperf-run-link" href="{}" aria-label="{} {}">{}</a>',
            address, gettext("Run benchmark"), benchmark, gettext("Run benchmark"),
        )  # fmt: skip
