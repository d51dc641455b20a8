"""The page that starts a run: a preview with the needed resources, and the request by POST."""

import uuid
from collections.abc import Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.contrib import admin
from django.core.exceptions import PermissionDenied, ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from pgperf.access import permissions
from pgperf.admin import audit, look, pages
from pgperf.admin.form_token import TokenField, tell_of_earlier
from pgperf.admin.ordered_choices import OrderedChoiceField
from pgperf.core import limits
from pgperf.core.exceptions import PgperfError
from pgperf.db import client_environments
from pgperf.models import Benchmark, Database, Run
from pgperf.reports.preview import Preview, preview
from pgperf.reports.run_json import live_workers, worker_command
from pgperf.runs import state
from pgperf.runs.definitions import Overrides

LENGTHS = (
    ("quick", _("Quick: a shorter run with wider intervals")),
    ("full", _("Full: the duration that the benchmark sets")),
)


class StartForm(forms.Form):
    """Database and length, and the environments where the site names some beside the default one."""

    database = forms.ModelChoiceField(Database.objects.none(), label=_("database"), empty_label=None)
    length = forms.ChoiceField(choices=LENGTHS, widget=forms.RadioSelect, label=_("length"))
    confirm_name = forms.CharField(
        required=False, label=_("database name"), widget=forms.TextInput(attrs={"autocomplete": "off"})
    )
    budget_s = forms.IntegerField(
        required=False,
        min_value=limits.BUDGET_S.low,
        max_value=limits.BUDGET_S.high,
        label=_("time budget (s)"),
        help_text=_(
            "The most time that this run may take. Empty: the benchmark's time budget or, if it has none, the"
            " time that pgperf predicts."
        ),
    )
    environments = OrderedChoiceField(
        required=False,
        widget=forms.CheckboxSelectMultiple,
        label=_("Python environments"),
        help_text=_(
            "Two or more are measured side by side in every round, and compared with the first. None: those of"
            " the benchmark."
        ),
    )
    token = TokenField()

    def __init__(
        self, databases: QuerySet[Database], *args: Any, environments: Sequence[str] = (), **kwargs: Any
    ) -> None:
        """`environments`: those of the benchmark, whose order the chosen ones keep."""
        super().__init__(*args, **kwargs)
        self.fields["database"].queryset = databases  # type: ignore[attr-defined]
        names = dict.fromkeys((*environments, *client_environments.names()))
        if environments and len(names) > 1:
            self.fields["environments"].choices = [(name, name) for name in names]  # type: ignore[attr-defined]
            self.fields["environments"].stored = environments  # type: ignore[attr-defined]
        else:
            del self.fields["environments"]

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        database = cleaned.get("database")
        if database and database.production and cleaned.get("confirm_name", "").strip() != database.name:
            self.add_error(
                "confirm_name",
                ValidationError(_("Type the database name exactly: %s") % database.name),
            )
        return cleaned


def start_view(page: admin.ModelAdmin, request: HttpRequest, benchmark_id: int) -> HttpResponse:
    """GET shows the preview; POST requests the run and redirects to it, or with `update` to
    the preview of its choices. With `look` it asks a worker, and shows the form as it was filled in.
    403 without `pgperf.start_run`.
    """
    if not (page.has_view_permission(request) and request.user.has_perm("pgperf.start_run")):
        raise PermissionDenied
    if request.method not in ("GET", "HEAD", "POST"):
        return HttpResponseNotAllowed(["GET", "POST"])
    benchmark = get_object_or_404(page.get_queryset(request), pk=benchmark_id)
    databases = permissions.visible(Database.objects.all(), request.user)
    form = _form(request, benchmark, databases)
    again = _again(request, databases, form)
    if look.is_asked(request):
        look.ask(page, request)
    elif "update" in request.POST:
        return HttpResponseRedirect(again)
    if form.is_valid():
        run = _request_run(page, request, benchmark, form)
        if run is not None:
            return HttpResponseRedirect(after(page, request, run))
    return pages.render(
        page,
        request,
        "admin/pgperf/benchmark/start.html",
        _context(request.user, benchmark, databases, form, again),
    )


def _form(request: HttpRequest, benchmark: Benchmark, databases: QuerySet[Database]) -> StartForm:
    own = benchmark.environments
    if request.method == "POST" and not look.is_asked(request):
        return StartForm(databases, request.POST, environments=own)
    given = request.POST or request.GET
    requested = _by_pk(databases, given.get("database", ""))
    usual = _by_pk(databases, str(benchmark.database_id))
    chosen = requested or usual or databases.first()
    return StartForm(
        databases,
        initial={
            "database": chosen and chosen.pk,
            "length": "quick" if given.get("length") == "quick" else "full",
            "budget_s": request.POST.get("budget_s", _budget_s(request.GET.get("budget_s"))),
            "confirm_name": look.typed_name(request),
            "environments": given.getlist("environments") or own,
            "token": uuid.uuid4().hex,
        },
        environments=own,
    )


def _request_run(
    page: admin.ModelAdmin, request: HttpRequest, benchmark: Benchmark, form: StartForm
) -> Run | None:
    """The requested run, or None with an error on the form, or where the page says why not."""
    shown = _preview(benchmark, form.cleaned_data["database"], form)
    if shown and shown.refusal:
        return None
    try:
        return requested(page, request, benchmark, form)
    except PgperfError as error:
        form.add_error(None, str(error))
        return None


def requested(page: admin.ModelAdmin, request: HttpRequest, benchmark: Benchmark, form: StartForm) -> Run:
    """The run that the valid form asks for, or has asked for before, with a message.

    Raises a PgperfError, which names the field.
    """
    data = form.cleaned_data
    quick, database = data["length"] == "quick", data["database"]
    assert request.user.is_authenticated  # admin_view requires a login

    new: list[Run] = []

    def note(run: Run) -> None:
        new.append(run)
        what = f"{benchmark.name} on {database.name}, {data['length']}, definition {audit.short_hash(run)}"
        audit.log_added(page, request, run, f"Requested {what}.")

    run = state.request(
        benchmark,
        database,
        Overrides(budget_s=data["budget_s"], environments=data.get("environments") or None),
        quick=quick,
        user=request.user,
        token=data["token"],
        confirmed=data["confirm_name"].strip(),
        note=note,
    )
    if not new:
        tell_of_earlier(page, request, run)
    return run


def _again(request: HttpRequest, databases: QuerySet[Database], form: StartForm) -> str:
    """This page with the choices of the form."""
    database = _chosen(databases, form)
    length = "quick" if form["length"].value() == "quick" else "full"
    chosen: dict[str, Any] = {"database": database.pk if database else "", "length": length}
    if budget_s := _budget_s(form["budget_s"].value()):
        chosen["budget_s"] = budget_s
    if environments := _environments(form):
        chosen["environments"] = environments
    return f"{request.path}?{urlencode(chosen, doseq=True)}"


def after(page: admin.ModelAdmin, request: HttpRequest, run: Run) -> str:
    """The run's page if the user may see it, else the list of benchmarks."""
    if permissions.may_view(request.user, Run):
        return pages.url(page, "pgperf_run_change", run.pk)
    page.message_user(request, gettext("%s was requested.") % run)
    return pages.url(page, "pgperf_benchmark_changelist")


def _context(
    user: Any, benchmark: Benchmark, databases: QuerySet[Database], form: StartForm, again: str
) -> dict[str, Any]:
    database = _chosen(databases, form)
    return {
        "title": gettext("Run %s") % benchmark,
        "benchmark": benchmark,
        "form": form,
        "preview": _preview(benchmark, database, form),
        "no_databases": database is None,
        "may_add_database": user.has_perm(permissions.ADD_DATABASE),
        "again": again,
        "one_database": len(databases) == 1,
        "workers": live_workers(),
        "paused": state.pause(),
        "waits": look.waits(database, user) if database else "",
        "worker_command": worker_command(),
    }


def _chosen(databases: QuerySet[Database], form: StartForm) -> Database | None:
    """The database that the form shows; the first one if the form names none."""
    return _by_pk(databases, str(form["database"].value() or "")) or databases.first()


def _preview(benchmark: Benchmark, database: Database | None, form: StartForm) -> Preview | None:
    if database is None:
        return None
    quick = form["length"].value() == "quick"
    budget_s, environments = _budget_s(form["budget_s"].value()), _environments(form)
    return preview(benchmark, database, quick=quick, budget_s=budget_s, environments=environments)


def _environments(form: StartForm) -> list[str] | None:
    """Those that are ticked, of unvalidated input; None for the benchmark's own."""
    if "environments" not in form.fields:
        return None
    field = form.fields["environments"]
    with suppress(ValidationError):
        found: list[str] = field.clean(form["environments"].value() or [])
        return found or None
    return None


def _budget_s(text: Any) -> int | None:
    """The time budget that is meant by unvalidated input; None for the benchmark's own."""
    with suppress(ValidationError):
        number: int | None = StartForm.base_fields["budget_s"].clean(text)
        return number
    return None


def _by_pk(databases: QuerySet[Database], text: str) -> Database | None:
    """The database whose primary key is `text`, which is unvalidated input."""
    return next((database for database in databases if str(database.pk) == text), None)
