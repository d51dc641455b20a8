"""Import and export of definitions: two pages and an action, each with its own permission.

pgperf.transfer applies the validation of the model and its form. pgperf does not use the admin
pages of django-import-export: they let all staff export, keep uploads in a shared folder and need
inline scripts.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.auth import get_permission_codename
from django.core.exceptions import PermissionDenied, ValidationError
from django.core.validators import RegexValidator
from django.db import models, router, transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from pgperf.access import permissions
from pgperf.admin import audit, pages
from pgperf.admin.access import GroupScopedAdmin
from pgperf.admin.consequences import runs_of
from pgperf.core.exceptions import TransferError
from pgperf.db.fields import group_ids, restrict
from pgperf.db.restriction import is_marked, marked
from pgperf.transfer import files
from pgperf.transfer.importing import ImportOutcome, Problem, RowChange, import_table
from pgperf.transfer.resources import DefinitionResource
from pgperf.transfer.table import MAX_BYTES, MAX_ROWS, ImportTable, short
from pgperf.workloads import query_access

_LINES_SHOWN = 100
#: A fieldset of every definition.
ACCESS: Any = (_("Access"), {"fields": ("groups", "restricted")})
#: Field of a form -> what is shown instead where nothing may be changed.
_SHOWN: dict[Any, str] = {"groups": "group_names"}


class ImportForm(forms.Form):
    """A file of definitions, cleaned to an ImportTable. `file_name` is the name of the upload."""

    import_file = forms.FileField(label=_("File"), max_length=255)
    file_name = ""

    def clean_import_file(self) -> ImportTable:
        upload = self.cleaned_data["import_file"]
        self.file_name = str(upload.name)
        if upload.size > MAX_BYTES:
            raise ValidationError(_("The file is larger than %d MiB.") % (MAX_BYTES // 2**20))
        try:
            return files.read(upload.name, upload.read())
        except TransferError as error:
            raise ValidationError(gettext("The file cannot be read: %s.") % error) from None


class ExportForm(forms.Form):
    """The file format; `chosen` lists the primary keys, empty for all rows."""

    format = forms.ChoiceField(
        label=_("Format"),
        choices=[(kind, entry.title) for kind, entry in files.FORMATS.items()],
        widget=forms.RadioSelect,
    )
    chosen = forms.CharField(
        required=False, widget=forms.HiddenInput, validators=[RegexValidator(r"\A\d{1,18}(,\d{1,18})*\Z")]
    )

    def clean_chosen(self) -> list[int]:
        return [int(number) for number in self.cleaned_data["chosen"].split(",") if number]


@dataclass(frozen=True)
class FormPermissions:
    """The user's permissions as the admin's own forms apply them."""

    page: admin.ModelAdmin
    request: HttpRequest

    def may(self, verb: str, model: type[models.Model], row: models.Model | None = None) -> bool:
        if model is not self.page.model:
            inline = next(kind for kind in self.page.inlines if kind.model is model)
            owner = inline(self.page.model, self.page.admin_site)
            return bool(getattr(owner, f"has_{verb}_permission")(self.request, None))
        if verb == "add":
            return self.page.has_add_permission(self.request)
        return bool(getattr(self.page, f"has_{verb}_permission")(self.request, row))

    def readonly(self, row: models.Model | None) -> Collection[str]:
        return {str(name) for name in self.page.get_readonly_fields(self.request, row)}

    def visible(self, rows: QuerySet[Any]) -> QuerySet[Any]:
        return permissions.visible(rows, self.request.user)

    def check_query(self, query: Mapping[str, Any]) -> None:
        query_access.check_user(query, self.request.user)


class DefinitionAdmin(pages.StylesheetMixin, GroupScopedAdmin):
    """A ModelAdmin with import and export by `resource_class`."""

    resource_class: type[DefinitionResource]
    change_list_template = "admin/pgperf/transfer/change_list.html"
    actions: tuple[str, ...] = ("export_selected",)

    def get_urls(self) -> list[URLPattern]:
        view, name = self.admin_site.admin_view, f"pgperf_{self.opts.model_name}"
        return [
            path("import/", view(self.import_view), name=f"{name}_import"),
            path("export/", view(self.export_view), name=f"{name}_export"),
            *super().get_urls(),
        ]

    def has_import_permission(self, request: HttpRequest) -> bool:
        """Opens the import page; each row also needs the permission to add or change it."""
        return self._has(request, "import") and self.has_view_permission(request)

    def has_export_permission(self, request: HttpRequest) -> bool:
        return self._has(request, "export") and self.has_view_permission(request)

    def _has(self, request: HttpRequest, verb: str) -> bool:
        return request.user.has_perm(f"pgperf.{get_permission_codename(verb, self.opts)}")

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        may = {
            "may_import": self.has_import_permission(request),
            "may_export": self.has_export_permission(request),
        }
        return super().changelist_view(request, {**(extra_context or {}), **may})

    # Restriction

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """Where nothing may be changed, Django would join the groups, perhaps in another database."""
        found = super().get_fieldsets(request, obj)
        return found if obj is None or self.has_change_permission(request, obj) else _with_group_names(found)

    @admin.display(description=_("groups"))
    def group_names(self, row: Any) -> str:
        return ", ".join(map(str, row._meta.get_field("groups").value_from_object(row))) or "–"

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        return () if permissions.is_superuser(request.user) else ("restricted",)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        if change and not permissions.is_superuser(request.user) and is_marked(obj):
            obj.restricted = True
        super().save_model(request, obj, form, change)

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        """A copy made by *Save as new* is restricted if it lacks what hides its original. A superuser
        may untick the original's own flag.
        """
        super().save_related(request, form, formsets, change)
        row = form.instance
        original = self._original(request) if "_saveasnew" in request.POST else None
        unticked = [original] if permissions.is_superuser(request.user) else []
        if any(mark not in (*unticked, *marked(row)) for mark in marked(original)):
            restrict(row)
        self._say_who_sees(request, row, opened=change and "restricted" in form.changed_data)

    def _original(self, request: HttpRequest) -> Any:
        match = request.resolver_match
        return self.get_object(request, match.kwargs.get("object_id", "")) if match else None

    def _say_who_sees(self, request: HttpRequest, row: Any, *, opened: bool) -> None:
        if row.restricted and not group_ids(row):
            text = gettext("Only superusers see %s now: it is restricted and has no groups.")
            self.message_user(request, text % row, messages.WARNING)
        if opened and not row.restricted and (runs := runs_of(row).filter(restricted=True).count()):
            text = ngettext("%d run of it stays restricted.", "%d runs of it stay restricted.", runs) % runs
            remedy = gettext("Lift the restriction of runs in their list.")
            self.message_user(request, f"{text} {remedy}", messages.WARNING)

    # Import

    def import_view(self, request: HttpRequest) -> HttpResponse:
        """GET shows the form; POST imports all rows or none. With `check`, POST only validates the
        file.
        """
        if not self.has_import_permission(request):
            raise PermissionDenied
        if request.method not in ("GET", "HEAD", "POST"):
            return HttpResponseNotAllowed(["GET", "POST"])
        form = ImportForm(request.POST, request.FILES) if request.method == "POST" else ImportForm()
        outcome, checking = None, "check" in request.POST
        if form.is_bound and form.is_valid():
            outcome = self._import(request, form, dry_run=checking)
            if not outcome.problems and not checking:
                self.message_user(request, _summary(outcome))
                return HttpResponseRedirect(pages.url(self, f"pgperf_{self.opts.model_name}_changelist"))
        return self._import_page(request, form, outcome)

    def _import(self, request: HttpRequest, form: ImportForm, *, dry_run: bool) -> ImportOutcome:
        """Save the rows and their history entries in one transaction."""
        resource = self.resource_class(self.get_queryset(request), FormPermissions(self, request))
        with transaction.atomic(using=router.db_for_write(self.model)):
            outcome = import_table(resource, form.cleaned_data["import_file"], dry_run=dry_run)
            if not dry_run:
                self._log(request, outcome, short(form.file_name))
        return outcome

    def _log(self, request: HttpRequest, outcome: ImportOutcome, name: str) -> None:
        for change in outcome.changes:
            if change.new:
                audit.log_added(self, request, change.row, f"Imported from {name}.")
            else:
                what = ", ".join(change.fields)
                moved = "".join(f" {each}." for each in change.address_changes)
                audit.log_changed(self, request, change.row, f"Imported from {name}: changed {what}.{moved}")

    def _import_page(
        self, request: HttpRequest, form: ImportForm, outcome: ImportOutcome | None
    ) -> TemplateResponse:
        problems: list[Problem] = outcome.problems if outcome else []
        changes: list[RowChange] = outcome.changes if outcome else []
        context = {
            "title": gettext("Import %s") % self.opts.verbose_name_plural,
            "form": form,
            "outcome": outcome,
            "summary": _summary(outcome) if outcome and not problems else "",
            "problems": problems[:_LINES_SHOWN],
            "changes": changes[:_LINES_SHOWN],
            "more": max(len(problems or changes) - _LINES_SHOWN, 0),
            "columns": self._columns(),
            "suffixes": ", ".join(files.suffixes()),
            "accept": ",".join(files.suffixes()),
            "most_rows": MAX_ROWS,
            "most_mib": MAX_BYTES // 2**20,
        }
        return pages.render(self, request, "admin/pgperf/transfer/import.html", context)

    def _columns(self) -> list[tuple[str, str]]:
        """The name of each column and a hint on its values."""
        columns = self.resource_class().fields.values()
        return [(column.column_name, column.widget.hint()) for column in columns]

    # Export

    def export_view(self, request: HttpRequest) -> HttpResponse:
        """GET shows the formats; POST returns the file."""
        if not self.has_export_permission(request):
            raise PermissionDenied
        if request.method not in ("GET", "HEAD", "POST"):
            return HttpResponseNotAllowed(["GET", "POST"])
        if request.method != "POST":
            return self._export_page(request, ExportForm(initial={"format": "json"}))
        form = ExportForm(request.POST)
        if form.is_valid():
            try:
                return self._file(request, **form.cleaned_data)
            except TransferError as error:
                form.add_error("format", f"{error}.")
        return self._export_page(request, form)

    @admin.action(description=_("Export selected %(verbose_name_plural)s"), permissions=["export"])
    def export_selected(self, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponse:
        chosen = ",".join(str(number) for number in queryset.values_list("pk", flat=True))
        return self._export_page(request, ExportForm(initial={"format": "json", "chosen": chosen}))

    def _file(self, request: HttpRequest, format: str, chosen: list[int]) -> HttpResponse:
        rows = self.get_queryset(request)
        rows = rows.filter(pk__in=chosen) if chosen else rows
        found = self.exported(request, rows)
        if not found:
            raise TransferError(gettext("there are no rows to export"))
        kind = files.FORMATS[format]
        content = files.write(format, found)
        audit.log_all_changed(request, rows, f"Exported as {kind.title}.")
        name = f"pgperf-{self.opts.model_name}s{kind.suffixes[0]}"
        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        return HttpResponse(content, content_type=kind.content_type, headers=headers)

    def exported(self, request: HttpRequest, rows: QuerySet[Any]) -> list[dict[str, Any]]:
        """The rows of the file: plain values by column."""
        return self.resource_class(rows).plain_rows()

    def _export_page(self, request: HttpRequest, form: ExportForm) -> TemplateResponse:
        chosen = str(form["chosen"].value() or "")
        context = {
            "title": gettext("Export %s") % self.opts.verbose_name_plural,
            "form": form,
            "how_many": chosen.count(",") + 1 if chosen else self.get_queryset(request).count(),
        }
        return pages.render(self, request, "admin/pgperf/transfer/export.html", context)


def _with_group_names(fieldsets: Any) -> Any:
    return [
        (title, {**options, "fields": [_SHOWN.get(name, name) for name in options["fields"]]})
        for title, options in fieldsets
    ]


def _summary(outcome: ImportOutcome) -> str:
    new = sum(change.new for change in outcome.changes)
    changed = len(outcome.changes) - new
    parts = [
        ngettext("%d new", "%d new", new) % new,
        ngettext("%d changed", "%d changed", changed) % changed,
        gettext("%d unchanged") % outcome.same,
    ]
    return ", ".join(parts)
