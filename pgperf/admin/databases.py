"""Databases and the routes to them."""

from django.contrib import admin
from django.db.models import Count, Q, QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from pgperf.models import Database, Target


class TargetInline(admin.TabularInline):
    model = Target
    extra = 0
    fields = ("route", "host", "port", "sslmode", "pooler", "enabled")


class DatabaseAdmin(admin.ModelAdmin):
    list_display = ("name", "dbname", "routes", "production", "allow_fixtures", "credential")
    list_filter = ("production", "allow_fixtures")
    search_fields = ("name", "dbname", "notes", "targets__host")
    inlines = (TargetInline,)
    fieldsets = (
        (None, {"fields": ("name", "dbname", "user", "credential")}),
        (_("What is allowed"), {"fields": ("production", "allow_fixtures")}),
        (_("Notes"), {"fields": ("notes",)}),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Database]:
        enabled = Count("targets", filter=Q(targets__enabled=True), distinct=True)
        return super().get_queryset(request).prefetch_related("targets").annotate(enabled_targets=enabled)

    @admin.display(description=_("routes"), ordering="enabled_targets")
    def routes(self, database: Database) -> str:
        names = [target.route for target in database.targets.all() if target.enabled]
        return ", ".join(names) or str(_("none: add one to run a benchmark"))
