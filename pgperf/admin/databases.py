"""Databases and the routes to them."""

from typing import Any

from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.db.models import Count, Q, QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from pgperf.access import permissions
from pgperf.admin import audit
from pgperf.admin.transfer import DefinitionAdmin
from pgperf.models import Database, Target
from pgperf.transfer.resources import DatabaseResource


class TargetInline(admin.StackedInline):
    """Where and how, then who: as many fields as these make no table that a window holds."""

    model = Target
    extra = 0
    fields = (
        ("route", "host", "port", "enabled"),
        ("pooler", "sslmode", "sslrootcert"),
        ("user", "credential"),
    )


class DatabaseAdmin(DefinitionAdmin):
    """Whether a database is production is for superusers to say."""

    resource_class = DatabaseResource
    list_display = ("name", "dbname", "routes", "production", "allow_fixtures", "credential")
    list_filter = ("production", "allow_fixtures")
    search_fields = ("name", "dbname", "notes", "targets__host")
    inlines = (TargetInline,)
    fieldsets = (
        (None, {"fields": ("name", "dbname", "user", "credential", "agent")}),
        (_("What is allowed"), {"fields": ("production", "allow_fixtures", "groups")}),
        (_("Notes"), {"fields": ("notes",)}),
    )

    # Saying where a database is says where a password goes: that takes a permission of its own.

    def has_add_permission(self, request: HttpRequest) -> bool:
        return super().has_add_permission(request) and request.user.has_perm(permissions.MANAGE_TARGETS)

    def has_change_permission(self, request: HttpRequest, obj: Database | None = None) -> bool:
        return super().has_change_permission(request, obj) and request.user.has_perm(
            permissions.MANAGE_TARGETS
        )

    def has_delete_permission(self, request: HttpRequest, obj: Database | None = None) -> bool:
        return super().has_delete_permission(request, obj) and request.user.has_perm(
            permissions.MANAGE_TARGETS
        )

    def construct_change_message(
        self, request: HttpRequest, form: Any, formsets: Any, add: bool = False
    ) -> list[dict[str, Any]]:
        """Django notes which fields changed; where a password goes now, and went before, is noted in full."""
        return super().construct_change_message(request, form, formsets, add) + _moves(form, formsets)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Database]:
        enabled = Count("targets", filter=Q(targets__enabled=True), distinct=True)
        return super().get_queryset(request).prefetch_related("targets").annotate(enabled_targets=enabled)

    def get_readonly_fields(self, request: HttpRequest, obj: Database | None = None) -> tuple[str, ...]:
        return () if request.user.is_superuser else ("production",)

    def log_addition(self, request: HttpRequest, obj: Any, message: Any) -> LogEntry:
        """Whoever changes where a password goes is also known by address."""
        return super().log_addition(request, obj, _signed(request, message))

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> LogEntry:
        return super().log_change(request, obj, _signed(request, message))

    @admin.display(description=_("routes"), ordering="enabled_targets")
    def routes(self, database: Database) -> str:
        names = [target.route for target in database.targets.all() if target.enabled]
        return ", ".join(names) or str(_("none: add one to run a benchmark"))


#: What decides where a login goes, and whose it is.
_ADDRESS = ("dbname", "user", "credential", "host", "port", "sslmode", "sslrootcert", "pooler", "enabled")


def _moves(form: Any, formsets: Any) -> list[dict[str, Any]]:
    """A line of history for each change of an address: what it was and what it is."""
    forms = [form, *(inner for formset in formsets or [] for inner in formset.initial_forms)]
    return [
        {
            "changed": {
                "name": str(inner.instance._meta.verbose_name),
                "object": f"{inner.instance}: {inner.initial.get(name)!s} → {inner.cleaned_data[name]!s}",
                "fields": [name],
            }
        }
        for inner in forms
        if inner.instance.pk and not form.instance._state.adding
        for name in _ADDRESS
        if name in inner.changed_data and name in inner.cleaned_data and name in inner.initial
    ]


def _signed(request: HttpRequest, message: Any) -> str:
    """What a form changed, field by field, with the address; our own words have it already."""
    return message if isinstance(message, str) else audit.signed(request, audit.plain(message))
