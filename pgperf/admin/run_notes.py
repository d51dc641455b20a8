"""Notes on a run, its pin against retention, and saving its definition as a benchmark."""

import hashlib
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import router, transaction
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


class _Text(forms.CharField):
    """Counts the end of a line as one character, as the field of a browser does."""

    def to_python(self, value: Any) -> Any:
        return (super().to_python(value) or "").replace("\r\n", "\n")


class NotesForm(forms.Form):
    """`seen` stands for the notes that the editor's page showed."""

    notes = _Text(
        label=_("Notes"),
        required=False,
        max_length=10_000,
        widget=forms.Textarea(attrs={"rows": 4}),
    )
    seen = forms.CharField(required=False, widget=forms.HiddenInput)

    def is_unaware_of(self, notes: str) -> bool:
        """Whether the valid form would erase these notes without its editor knowing them."""
        return notes != self.cleaned_data["notes"] and self.cleaned_data["seen"] != _digest(notes)

    def refuse(self, notes: str) -> None:
        """Keep what was typed; the page shows `notes`, so the next click may replace them."""
        self.data = {"notes": self.data.get("notes", ""), "seen": _digest(notes)}
        changed = _("They have changed since you opened this page. Save again to replace what is there now.")
        self.add_error("notes", ValidationError(changed))


def _digest(notes: str) -> str:
    return hashlib.sha256(notes.encode()).hexdigest() if notes else ""


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
            "notes_form": NotesForm(initial={"notes": run.notes, "seen": _digest(run.notes)}),
        }

    def notes_view(self, request: HttpRequest, run_id: int) -> HttpResponse:
        """POST replaces the notes; with an error it answers with the run's page and what was typed."""
        if rejected := self._rejected(request, self.has_notes_permission(request)):
            return rejected
        run = get_object_or_404(self.get_queryset(request), pk=run_id)
        form = NotesForm(request.POST)
        if not (form.is_valid() and self._save_notes(run, form)):
            return self.run_page(request, run, notes_form=form)
        audit.log_changed(self, request, run, "Changed the notes.")
        self.message_user(request, gettext("The notes are saved."), messages.SUCCESS)
        return self._back(run)

    def run_page(self, request: HttpRequest, run: Run, **changed: Any) -> HttpResponse:
        """The run's page with these changes to its context."""
        raise NotImplementedError

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

    def _save_notes(self, run: Run, form: NotesForm) -> bool:
        """False with an error on the form if it would erase notes that its editor has not seen."""
        using = router.db_for_write(Run)
        with transaction.atomic(using=using):
            locked = Run.objects.using(using).select_for_update().only("notes")
            run.notes = get_object_or_404(locked, pk=run.pk).notes
            if form.is_unaware_of(run.notes):
                form.refuse(run.notes)
                return False
            self._update(run, notes=form.cleaned_data["notes"])
        return True

    def _update(self, run: Run, **fields: Any) -> None:
        Run.objects.using(router.db_for_write(Run)).filter(pk=run.pk).update(**fields)

    def _back(self, run: Run) -> HttpResponse:
        return HttpResponseRedirect(pages.url(self, "pgperf_run_change", run.pk))


def _workloads(request: HttpRequest) -> QuerySet[Workload]:
    """Those that the user may use."""
    return permissions.visible(Workload.objects.all(), request.user)
