"""Notes on a run, its pin against retention, and saving its definition as a benchmark."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db import router
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.urls import URLPattern, path
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from pgperf.access import permissions
from pgperf.admin import audit, pages
from pgperf.core.exceptions import InvalidDefinition
from pgperf.models import Run, Workload
from pgperf.runs import clone

_SUMMARY_LENGTH = 40


class NotesForm(forms.Form):
    notes = forms.CharField(
        label=_("Notes"),
        required=False,
        max_length=10_000,
        widget=forms.Textarea(attrs={"rows": 4}),
    )


class RunNotesAdmin(admin.ModelAdmin):
    """Adds notes and pins to the admin of runs.

    Both need the permission *change run* and leave the run's state and results unchanged.
    """

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        return [
            path("<int:run_id>/notes/", view(self.notes_view), name="pgperf_run_notes"),
            path("<int:run_id>/pin/", view(self.pin_view), name="pgperf_run_pin"),
            path("<int:run_id>/benchmark/", view(self.benchmark_view), name="pgperf_run_benchmark"),
            *super().get_urls(),
        ]

    def has_notes_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("pgperf.change_run") and self.has_view_permission(request)

    def has_save_as_benchmark_permission(self, request: HttpRequest, run: Run) -> bool:
        """Needs *add workload* too if the run's workload was deleted or changed since."""
        return (
            self.has_view_permission(request)
            and request.user.has_perm("pgperf.add_benchmark")
            and (
                request.user.has_perm("pgperf.add_workload")
                or not clone.needs_workload(run, _workloads(request))
            )
        )

    def notes_context(self, request: HttpRequest, run: Run) -> dict[str, Any]:
        return {
            "may_edit_notes": self.has_notes_permission(request),
            "may_save_as_benchmark": self.has_save_as_benchmark_permission(request, run),
            "notes_form": NotesForm(initial={"notes": run.notes}),
        }

    def notes_view(self, request: HttpRequest, run_id: int) -> HttpResponse:
        """POST replaces the notes."""
        if rejected := self._rejected(request, self.has_notes_permission(request)):
            return rejected
        run = get_object_or_404(self.get_queryset(request), pk=run_id)
        form = NotesForm(request.POST)
        if form.is_valid():
            self._update(run, notes=form.cleaned_data["notes"])
            audit.log_changed(self, request, run, "Changed the notes.")
            self.message_user(request, gettext("The notes are saved."), messages.SUCCESS)
        else:
            self.message_user(request, " ".join(str(error) for error in form.errors["notes"]), messages.ERROR)
        return self._back(run)

    def pin_view(self, request: HttpRequest, run_id: int) -> HttpResponse:
        """POST pins the run with pinned=1, so that `pgperf prune` keeps it, and unpins it
        otherwise.
        """
        if rejected := self._rejected(request, self.has_notes_permission(request)):
            return rejected
        run = get_object_or_404(self.get_queryset(request), pk=run_id)
        pinned = request.POST.get("pinned") == "1"
        if run.pinned != pinned:
            self._update(run, pinned=pinned)
            audit.log_changed(self, request, run, "Pinned." if pinned else "Unpinned.")
        kept = gettext("Pinned: pgperf prune keeps this run.")
        unpinned = gettext("Unpinned: pgperf prune may delete this run.")
        self.message_user(request, kept if pinned else unpinned, messages.SUCCESS)
        return self._back(run)

    def benchmark_view(self, request: HttpRequest, run_id: int) -> HttpResponse:
        """POST saves the run's definition as a benchmark and redirects to that."""
        if rejected := self._rejected(request, self.has_view_permission(request)):
            return rejected
        run = get_object_or_404(self.get_queryset(request), pk=run_id)
        if not self.has_save_as_benchmark_permission(request, run):
            raise PermissionDenied
        try:
            benchmark = clone.from_run(run, _workloads(request), request.user)
        except InvalidDefinition as error:
            text = gettext("This run cannot be saved as a benchmark. %s") % error
            self.message_user(request, text, messages.ERROR)
            return self._back(run)
        audit.log_added(self, request, benchmark, f"Saved from {run}, definition {audit.short_hash(run)}.")
        self.message_user(
            request, gettext("This benchmark has the definition of %s.") % run, messages.SUCCESS
        )
        return HttpResponseRedirect(pages.url(self, "pgperf_benchmark_change", benchmark.pk))

    @admin.display(description=_("notes"), ordering="pinned")
    def notes_summary(self, run: Run) -> str:
        first = run.notes.strip().partition("\n")[0].strip()
        short = first if len(first) <= _SUMMARY_LENGTH else f"{first[:_SUMMARY_LENGTH]}…"
        return " · ".join(filter(None, (gettext("pinned") if run.pinned else "", short)))

    def _rejected(self, request: HttpRequest, may: bool) -> HttpResponse | None:
        if not may:
            raise PermissionDenied
        return None if request.method == "POST" else HttpResponseNotAllowed(["POST"])

    def _update(self, run: Run, **fields: Any) -> None:
        Run.objects.using(router.db_for_write(Run)).filter(pk=run.pk).update(**fields)

    def _back(self, run: Run) -> HttpResponse:
        return HttpResponseRedirect(pages.url(self, "pgperf_run_change", run.pk))


def _workloads(request: HttpRequest) -> QuerySet[Workload]:
    """Those that the user may use."""
    return permissions.visible(Workload.objects.all(), request.user)
