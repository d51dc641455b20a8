"""Workloads: what one operation does."""

from django.utils.translation import gettext_lazy as _

from pgperf.admin.transfer import DefinitionAdmin
from pgperf.transfer.resources import WorkloadResource


class WorkloadAdmin(DefinitionAdmin):
    resource_class = WorkloadResource
    list_display = ("name", "title", "orm", "fixture")
    list_filter = ("fixture",)
    search_fields = ("name", "title", "sql", "orm")
    save_as = True
    fieldsets = (
        (None, {"fields": ("name", "title")}),
        (_("One operation"), {"fields": ("sql", "args", "orm", "fixture")}),
        (_("The other query of the cold phases"), {"fields": ("other_sql", "other_args", "other_orm")}),
    )
