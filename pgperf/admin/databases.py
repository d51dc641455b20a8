"""Databases and the routes to them."""

from typing import Any

from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.db.models import Count, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from pgperf.access import permissions
from pgperf.admin import audit, server_advice
from pgperf.admin.filters import FixturesFilter, RestrictedFilter
from pgperf.admin.forms import DefinitionForm
from pgperf.admin.target_forms import TargetFormSet
from pgperf.admin.transfer import DefinitionAdmin
from pgperf.models import Database, Target
from pgperf.transfer.columns import MAX_TARGETS, plain_target
from pgperf.transfer.resources import DatabaseResource, address


class TargetInline(admin.StackedInline):
    """The address, and folded what few routes need: a table of these fields would be too wide."""

    model = Target
    formset = TargetFormSet
    extra = 0
    max_num = MAX_TARGETS
    fieldsets = (
        (None, {"fields": (("route", "host", "port", "enabled"), "url")}),
        # No rows of several fields: with an error in one of those, Django would stay folded.
        (_("Pooler, TLS, login and step"), {"classes": ("collapse",), "fields": (
            "pooler", "sslmode", "sslrootcert", "user", "credential", "allow_cleartext_password", "builds_on",
        )}),
    )  # fmt: skip

    def get_formset(self, request: HttpRequest, obj: Any = None, **kwargs: Any) -> Any:
        """Django alone would build and show up to 2,000 forms, if a request asks for them."""
        stored = obj.targets.count() if obj else 0
        return super().get_formset(request, obj, **kwargs, absolute_max=max(MAX_TARGETS, stored))


class DatabaseForm(DefinitionForm):
    """Tells the two names of a database apart."""

    class Meta:
        help_texts = {
            "name": _("The name in pgperf, on pages and in commands."),
            "dbname": _("The name on the server: NAME in DATABASES."),
            "production": _("To start a run, the user must type the name in pgperf."),
        }


class DatabaseAdmin(DefinitionAdmin):
    """Only superusers may change whether a database is in production."""

    resource_class = DatabaseResource
    change_form_template = "admin/pgperf/database/change_form.html"
    form = DatabaseForm
    list_display = ("name", "dbname", "routes", "production", "allow_fixtures", "credential")
    list_filter = ("production", ("allow_fixtures", FixturesFilter), ("restricted", RestrictedFilter))
    search_fields = ("name", "dbname", "notes")
    inlines = (TargetInline,)
    fieldsets = (
        (None, {"fields": ("name", "dbname", "user", "credential", "agent")}),
        (_("Access and safety"), {"fields": ("production", "allow_fixtures", "groups", "restricted")}),
        (_("Notes"), {"fields": ("notes",)}),
    )

    def render_change_form(
        self,
        request: HttpRequest,
        context: dict[str, Any],
        add: bool = False,
        change: bool = False,
        form_url: str = "",
        obj: Database | None = None,
    ) -> HttpResponse:
        """Add the advice on the server's settings; a new row has none."""
        advice = server_advice.panel(request, obj) if obj else None
        return super().render_change_form(
            request, {**context, "server_advice": advice}, add, change, form_url, obj
        )

    # An address decides where a password is sent, so changing one needs a permission of its own.

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
        """Add the old and new values of the fields that decide where a password is sent."""
        own = super().construct_change_message(request, form, formsets, add)
        return own + _address_changes(form, formsets) + _new_and_deleted_addresses(formsets)

    # The search, the export and the history have addresses, for those who may see targets.

    def get_search_fields(self, request: HttpRequest) -> tuple[str, ...]:
        hosts = ("targets__host",) if permissions.may_view(request.user, Target) else ()
        return (*self.search_fields, *hosts)

    def exported(self, request: HttpRequest, rows: QuerySet[Any]) -> list[dict[str, Any]]:
        """An import leaves the targets as they are where the file has none."""
        found = super().exported(request, rows)
        if permissions.may_view(request.user, Target):
            return found
        return [{name: value for name, value in row.items() if name != "targets"} for row in found]

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        page = super().history_view(request, object_id, extra_context)
        if not permissions.may_view(request.user, Target):
            for entry in getattr(page, "context_data", {}).get("action_list", ()):
                entry.change_message = gettext(
                    "What changed is for users with the permission to view targets."
                )
        return page

    def get_queryset(self, request: HttpRequest) -> QuerySet[Database]:
        enabled = Count("targets", filter=Q(targets__enabled=True), distinct=True)
        return super().get_queryset(request).prefetch_related("targets").annotate(enabled_targets=enabled)

    def get_readonly_fields(self, request: HttpRequest, obj: Database | None = None) -> tuple[str, ...]:
        if permissions.is_superuser(request.user):
            return ()
        return ("production", *super().get_readonly_fields(request, obj))

    def log_addition(self, request: HttpRequest, obj: Any, message: Any) -> LogEntry:
        """Record the client's address too: the change may decide where a password is sent."""
        return super().log_addition(request, obj, _with_address(request, message))

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> LogEntry:
        return super().log_change(request, obj, _with_address(request, message))

    @admin.display(description=_("routes"), ordering="enabled_targets")
    def routes(self, database: Database) -> str:
        names = [target.route for target in database.targets.all() if target.enabled]
        return ", ".join(names) or str(_("none: add a route to run benchmarks"))


#: The fields that decide which login is sent where.
_ADDRESS = (
    "dbname", "user", "credential", "host", "port", "sslmode", "sslrootcert", "allow_cleartext_password", "pooler",
    "url", "enabled",
)  # fmt: skip


def _address_changes(form: Any, formsets: Any) -> list[dict[str, Any]]:
    """A history entry with the old and the new value for each changed address field."""
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


def _new_and_deleted_addresses(formsets: Any) -> list[dict[str, Any]]:
    """A history entry with the address of each target that is new, and of each that was deleted."""
    found = []
    for formset in formsets or []:
        found += [_moved("added", plain_target(target)) for target in formset.new_objects]
        gone = [form for form in formset.deleted_forms if form in formset.initial_forms]
        found += [_moved("deleted", _as_stored(form)) for form in gone]
    return found


def _as_stored(form: Any) -> dict[str, Any]:
    """The target as it was: a form may change what it deletes, in memory."""
    return {name: form.initial.get(name, value) for name, value in plain_target(form.instance).items()}


def _moved(kind: str, target: dict[str, Any]) -> dict[str, Any]:
    there = address(target)
    text = f"none → {there}" if kind == "added" else f"{there} → none"
    return {kind: {"name": str(Target._meta.verbose_name), "object": f"{target['route']}: {text}"}}


def _with_address(request: HttpRequest, message: Any) -> str:
    """A form's changes as text with the client's address; a plain string has the address already."""
    return message if isinstance(message, str) else audit.with_address(request, audit.as_text(message))
