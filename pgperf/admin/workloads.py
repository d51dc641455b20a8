"""Workloads: the list and the form."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from pgperf.admin.filters import RestrictedFilter
from pgperf.admin.transfer import ACCESS, DefinitionAdmin
from pgperf.admin.workload_form import WorkloadForm
from pgperf.models import Workload
from pgperf.transfer.resources import WorkloadResource


class WorkloadAdmin(DefinitionAdmin):
    resource_class = WorkloadResource
    form = WorkloadForm
    list_display = ("name", "title", "kind", "fixture")
    list_filter = ("fixture", ("restricted", RestrictedFilter))
    search_fields = ("name", "title", "sql", "orm", "model", "path")
    save_as = True
    fieldsets = (
        (None, {"fields": ("name", "title")}),
        ACCESS,
        (_("Operation: a registered callable"), {"fields": ("orm", "args")}),
        (
            _("or a model query, without code"),
            {
                "fields": (
                    "model",
                    "fetch",
                    "lookup",
                    "select_related",
                    "prefetch_related",
                    "ordering",
                    "values",
                    "limit",
                )
            },
        ),
        (
            _("or a page of this site"),
            {"fields": ("path", "method", "page_user", "one_capture")},
        ),
        (_("or SQL"), {"fields": ("sql", "fixture")}),
        (_("or many rows at once"), {"fields": ("bulk",)}),
        (_("Second query of the cold phases"), {"fields": ("other_sql", "other_args", "other_orm")}),
    )

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        form = super().get_form(request, obj, change, **kwargs)
        return type(form.__name__, (form,), {"user": request.user})

    @admin.display(description=_("operation"))
    def kind(self, workload: Workload) -> str:
        """The kind of workload, without its values."""
        if workload.model:
            return f"{workload.model}: {workload.get_fetch_display()}"
        if workload.path:
            return f"{workload.method} {workload.path.partition('?')[0]}"
        return workload.orm or workload.bulk or gettext("SQL")
