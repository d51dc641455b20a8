"""Putting one variant's verdict to the test: what would run, and the one POST that asks for it."""

import uuid
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.core.validators import RegexValidator
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from pgperf.access import permissions
from pgperf.admin import audit, pages
from pgperf.core.exceptions import InvalidDefinition, PgperfError
from pgperf.models import Database, Run, VariantResult
from pgperf.reports.confirmation import preview
from pgperf.reports.labels import label_text
from pgperf.reports.run_json import live_workers, worker_command
from pgperf.runs import confirmation


class ConfirmForm(forms.Form):
    """`token` makes a double click find the run that the first click made."""

    variant = forms.CharField(widget=forms.HiddenInput)
    confirm_name = forms.CharField(
        required=False, label=_("name of the database"), widget=forms.TextInput(attrs={"autocomplete": "off"})
    )
    token = forms.CharField(widget=forms.HiddenInput, validators=[RegexValidator(r"\A[0-9a-f]{32}\Z")])

    def __init__(self, database: Database | None, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._database = database

    def clean_confirm_name(self) -> str:
        typed = str(self.cleaned_data["confirm_name"]).strip()
        if self._database and self._database.production and typed != self._database.name:
            raise ValidationError(_("Type the name of the database exactly: %s") % self._database.name)
        return typed


def confirm_view(page: admin.ModelAdmin, request: HttpRequest, run: Run) -> HttpResponse:
    """Shows the page for the `variant` asked for; a POST with the page's token asks for the run and goes to it.

    403 without `pgperf.start_run`; back to the run, with the reason, for a verdict that cannot be tested.
    """
    if not request.user.has_perm(permissions.START):
        raise PermissionDenied
    if request.method not in ("GET", "HEAD", "POST"):
        return HttpResponseNotAllowed(["GET", "POST"])
    data = request.POST if request.method == "POST" else request.GET
    try:
        row = confirmation.find(run, data.get("variant", ""))
    except InvalidDefinition as error:
        page.message_user(request, str(error), messages.ERROR)
        return HttpResponseRedirect(pages.url(page, "pgperf_run_change", run.pk))
    form = _form(request, row)
    if form.is_bound and form.is_valid():
        asked = _request(page, request, row, form)
        if asked is not None:
            return HttpResponseRedirect(pages.url(page, "pgperf_run_change", asked.pk))
    return pages.render(page, request, "admin/pgperf/run/confirm.html", _context(row, form))


def _form(request: HttpRequest, row: VariantResult) -> ConfirmForm:
    """Bound once the page itself has been sent back: the button on the run's page has no token yet."""
    if request.method == "POST" and "token" in request.POST:
        return ConfirmForm(row.run.database, request.POST)
    return ConfirmForm(row.run.database, initial={"variant": row.label, "token": uuid.uuid4().hex})


def _request(
    page: admin.ModelAdmin, request: HttpRequest, row: VariantResult, form: ConfirmForm
) -> Run | None:
    """The run asked for, or None with the reason on the form."""
    asked = form.cleaned_data

    def log(run: Run) -> None:
        text = f"Requested, to test {row.label} of run {row.run_id}, definition {audit.digest(run)}."
        audit.added(page, request, run, text)

    try:
        return confirmation.request(
            row, user=request.user, token=asked["token"], confirmed=asked["confirm_name"], note=log
        )
    except PgperfError as error:
        form.add_error(None, str(error))
        return None


def _context(row: VariantResult, form: ConfirmForm) -> dict[str, Any]:
    return {
        "title": gettext("Confirm %s") % label_text(row.label),
        "run": row.run,
        "database": row.run.database,
        "form": form,
        "preview": preview(row),
        "workers": live_workers(),
        "worker_command": worker_command(),
    }
