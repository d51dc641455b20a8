"""The page that confirms one variant's verdict: a preview of the test run, and its request by POST."""

import uuid
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from pgperf.access import permissions
from pgperf.admin import audit, look, pages
from pgperf.admin.form_token import TokenField, tell_of_earlier
from pgperf.core.exceptions import InvalidDefinition, PgperfError
from pgperf.models import Database, Run, VariantResult
from pgperf.reports.confirmation import preview
from pgperf.reports.labels import variant_title
from pgperf.reports.run_json import live_workers, worker_command
from pgperf.runs import confirmation, state


class ConfirmForm(forms.Form):
    variant = forms.CharField(widget=forms.HiddenInput)
    confirm_name = forms.CharField(
        required=False, label=_("database name"), widget=forms.TextInput(attrs={"autocomplete": "off"})
    )
    token = TokenField()

    def __init__(self, database: Database | None, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._database = database

    def clean_confirm_name(self) -> str:
        typed = str(self.cleaned_data["confirm_name"]).strip()
        if self._database and self._database.production and typed != self._database.name:
            raise ValidationError(_("Type the database name exactly: %s") % self._database.name)
        return typed


def confirm_view(page: admin.ModelAdmin, request: HttpRequest, run: Run) -> HttpResponse:
    """Show the page for `variant`; a POST with the page's token requests the run and redirects to
    it. With `look` it asks a worker, and shows the form as it was filled in.

    Answers 403 without `pgperf.start_run`. Redirects to the run with an error for a verdict that no
    run can test.
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
    again = f"{request.path}?{urlencode({'variant': row.label})}"
    if look.is_asked(request):
        look.ask(page, request)
    form = _form(request, row)
    if form.is_valid():
        test_run = _request(page, request, row, form)
        if test_run is not None:
            return HttpResponseRedirect(pages.url(page, "pgperf_run_change", test_run.pk))
    return pages.render(
        page, request, "admin/pgperf/run/confirm.html", _context(request.user, row, form, again)
    )


def _form(request: HttpRequest, row: VariantResult) -> ConfirmForm:
    """A bound form if the POST comes from this page: the button on the run's page sends no token."""
    if "token" in request.POST and not look.is_asked(request):
        return ConfirmForm(row.run.database, request.POST)
    initial = {"variant": row.label, "confirm_name": look.typed_name(request), "token": uuid.uuid4().hex}
    return ConfirmForm(row.run.database, initial=initial)


def _request(
    page: admin.ModelAdmin, request: HttpRequest, row: VariantResult, form: ConfirmForm
) -> Run | None:
    """The requested run, or None with an error on the form."""
    data = form.cleaned_data
    new: list[Run] = []

    def log(run: Run) -> None:
        new.append(run)
        text = f"Requested, to test {row.label} of run {row.run_id}, definition {audit.short_hash(run)}."
        audit.log_added(page, request, run, text)

    try:
        test_run = confirmation.request(
            row, user=request.user, token=data["token"], confirmed=data["confirm_name"], note=log
        )
    except PgperfError as error:
        form.add_error(None, str(error))
        return None
    if not new:
        tell_of_earlier(page, request, test_run)
    return test_run


def _context(user: Any, row: VariantResult, form: ConfirmForm, again: str) -> dict[str, Any]:
    database = row.run.database
    return {
        "title": gettext("Confirm %s") % variant_title(row),
        "run": row.run,
        "database": database,
        "form": form,
        "again": again,
        "preview": preview(row),
        "waits": look.waits(database, user) if database else "",
        "paused": state.pause(),
        "workers": live_workers(),
        "worker_command": worker_command(),
    }
