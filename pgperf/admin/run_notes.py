"""What people keep of a run: notes, a pin against retention, and its definition as a benchmark."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db import router
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.urls import URLPattern, path
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from pgperf.admin import audit, pages
from pgperf.core.exceptions import InvalidDefinition
from pgperf.models import Run
from pgperf.runs import clone

_SHOWN_OF_NOTES = 40


class NotesForm(forms.Form):
    notes = forms.CharField(
        label=_("Notes"),
        required=False,
        max_length=10_000,
        widget=forms.Textarea(attrs={"rows": 4}),
    )


class Keeping(admin.ModelAdmin):
    """Mix into the admin of runs. Notes and pins need *change run*; they never touch a run's state or results."""

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        return [
            path("<int:run_id>/notes/", view(self.notes_view), name="pgperf_run_notes"),
            path("<int:run_id>/pin/", view(self.pin_view), name="pgperf_run_pin"),
            path("<int:run_id>/benchmark/", view(self.benchmark_view), name="pgperf_run_benchmark"),
            *super().get_urls(),
        ]

    def has_keep_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("pgperf.change_run") and self.has_view_permission(request)

    def has_define_permission(self, request: HttpRequest, run: Run) -> bool:
        """A run whose workload is gone or changed brings a workload along."""
        return (
            self.has_view_permission(request)
            and request.user.has_perm("pgperf.add_benchmark")
            and (request.user.has_perm("pgperf.add_workload") or not clone.needs_workload(run))
        )

    def keep_context(self, request: HttpRequest, run: Run) -> dict[str, Any]:
        return {
            "may_keep": self.has_keep_permission(request),
            "may_define": self.has_define_permission(request, run),
            "notes_form": NotesForm(initial={"notes": run.notes}),
        }

    def notes_view(self, request: HttpRequest, run_id: int) -> HttpResponse:
        """POST replaces the notes."""
        if refused := self._refused(request, self.has_keep_permission(request)):
            return refused
        run = get_object_or_404(self.get_queryset(request), pk=run_id)
        form = NotesForm(request.POST)
        if form.is_valid():
            self._keep(run, notes=form.cleaned_data["notes"])
            audit.changed(self, request, run, "Changed the notes.")
            self.message_user(request, gettext("The notes are saved."), messages.SUCCESS)
        else:
            self.message_user(request, " ".join(str(error) for error in form.errors["notes"]), messages.ERROR)
        return self._back(run)

    def pin_view(self, request: HttpRequest, run_id: int) -> HttpResponse:
        """POST with pinned=1 keeps the run from `pgperf prune`; with anything else it no longer does."""
        if refused := self._refused(request, self.has_keep_permission(request)):
            return refused
        run = get_object_or_404(self.get_queryset(request), pk=run_id)
        pinned = request.POST.get("pinned") == "1"
        if run.pinned != pinned:
            self._keep(run, pinned=pinned)
            audit.changed(self, request, run, "Pinned." if pinned else "No longer pinned.")
        said = gettext("Pinned: retention leaves it alone.") if pinned else gettext("No longer pinned.")
        self.message_user(request, said, messages.SUCCESS)
        return self._back(run)

    def benchmark_view(self, request: HttpRequest, run_id: int) -> HttpResponse:
        """POST saves what the run was asked to do as a benchmark, and goes to it."""
        if refused := self._refused(request, self.has_view_permission(request)):
            return refused
        run = get_object_or_404(self.get_queryset(request), pk=run_id)
        if not self.has_define_permission(request, run):
            raise PermissionDenied
        try:
            benchmark = clone.from_run(run)
        except InvalidDefinition as error:
            said = gettext("It cannot be a benchmark here. %s") % error
            self.message_user(request, said, messages.ERROR)
            return self._back(run)
        audit.added(self, request, benchmark, f"Made from {run}, definition {audit.digest(run)}.")
        self.message_user(request, gettext("This benchmark does what %s did.") % run, messages.SUCCESS)
        return HttpResponseRedirect(pages.url(self, "pgperf_benchmark_change", benchmark.pk))

    @admin.display(description=_("notes"), ordering="pinned")
    def remark(self, run: Run) -> str:
        first = run.notes.strip().partition("\n")[0].strip()
        short = first if len(first) <= _SHOWN_OF_NOTES else f"{first[:_SHOWN_OF_NOTES]}…"
        return " · ".join(filter(None, (gettext("pinned") if run.pinned else "", short)))

    def _refused(self, request: HttpRequest, may: bool) -> HttpResponse | None:
        if not may:
            raise PermissionDenied
        return None if request.method == "POST" else HttpResponseNotAllowed(["POST"])

    def _keep(self, run: Run, **fields: Any) -> None:
        Run.objects.using(router.db_for_write(Run)).filter(pk=run.pk).update(**fields)

    def _back(self, run: Run) -> HttpResponse:
        return HttpResponseRedirect(pages.url(self, "pgperf_run_change", run.pk))
