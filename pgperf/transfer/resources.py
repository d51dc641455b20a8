"""The exported fields of each definition: all fields of its model except the ID.

A new model field is exported without a change here; the tests fail for a field type that cells.py
does not know.
"""

from collections.abc import Collection, Mapping
from typing import Any, Protocol

from django.core.exceptions import NON_FIELD_ERRORS, ValidationError
from django.db import models
from django.db.models import QuerySet
from django.utils.translation import gettext as _
from import_export import resources

from pgperf.db.restriction import UNTICKED_WITH_GROUPS, is_marked
from pgperf.models import Benchmark, Database, Target, Workload
from pgperf.transfer.cells import cell_of
from pgperf.transfer.columns import (
    FieldColumn,
    NamesCell,
    NamesColumn,
    RelatedColumn,
    TargetsColumn,
    WorkloadsColumn,
)
from pgperf.transfer.table import ImportTable, short
from pgperf.workloads import queries

#: The value of a column that a row omits.
ABSENT: Any = object()
#: Characters of SQL in one file: the check of a statement reads each token of it.
MAX_SQL = 128 * 1024
#: Primary keys differ between sites.
LEFT_OUT = ("id",)


class ImportPermissions(Protocol):
    """The permissions on single rows of the user who imports, as the admin's forms apply them."""

    def may(self, verb: str, model: type[models.Model], row: models.Model | None = None) -> bool:
        """`verb` is add, change or delete."""

    def readonly(self, row: models.Model | None) -> Collection[str]:
        """Fields that are read-only for this user in the form of `row`; None stands for a new row."""

    def visible(self, rows: QuerySet[Any]) -> QuerySet[Any]:
        """The rows of a related model that this user may name."""

    def check_query(self, query: Mapping[str, Any]) -> None:
        """Raises ValidationError unless this user may read what the query without code reads."""


class DefinitionResource(resources.ModelResource):
    """Identifies definitions by name.

    A row without changes needs no permission and is not written.
    """

    class Meta:
        exclude = LEFT_OUT
        import_id_fields = ["name"]
        clean_model_instances = True
        skip_unchanged = True
        skip_html_diff = True
        store_instance = True
        use_transactions = True

    def __init__(
        self, queryset: QuerySet[Any] | None = None, permissions: ImportPermissions | None = None
    ) -> None:
        """`queryset`: the rows that the user may see.

        Import needs `permissions`; export does not.
        """
        super().__init__()
        self.queryset = queryset
        self.permissions = permissions
        self.changed: dict[int, list[str]] = {}  # position of the row -> changed columns
        self.address_changes: dict[int, list[str]] = {}  # position of the row -> "field: old → new"
        self._rows_by_name: dict[str, int] = {}
        self._before: Any = None

    @classmethod
    def field_from_django_field(cls, field_name: str, django_field: Any, readonly: bool) -> FieldColumn:
        if isinstance(django_field, models.ManyToManyField):
            cell, column = NamesCell(django_field), NamesColumn
        else:
            cell, column = cell_of(django_field), FieldColumn
        return column(attribute=field_name, column_name=field_name, widget=cell, readonly=readonly)

    def get_queryset(self) -> QuerySet[Any]:
        rows = self._meta.model._default_manager.all() if self.queryset is None else self.queryset
        return rows.using(self.get_db_connection_name())

    def visible(self, rows: QuerySet[Any]) -> QuerySet[Any]:
        return rows if self.permissions is None else self.permissions.visible(rows)

    def plain_rows(self) -> list[dict[str, Any]]:
        """The rows of an exported file: plain values by column."""
        data = self.export(self.get_queryset())
        return [dict(zip(data.headers, row, strict=True)) for row in data]

    def related_columns(self) -> list[RelatedColumn]:
        return [column for column in self.fields.values() if isinstance(column, RelatedColumn)]

    def read_older_columns(self, table: ImportTable) -> None:
        """Rewrite columns that files of older releases have, in place."""

    # Import of one row, in the order of the calls

    def before_import_row(self, row: Any, **kwargs: Any) -> None:
        """Validate the name first: it identifies the row."""
        number = kwargs["numbers"][kwargs["row_number"] - 1]
        try:
            if row.get("name", ABSENT) is ABSENT:
                raise ValueError(_("This column is required."))
            name = self.fields["name"].clean(row, **kwargs)
        except ValueError as error:
            raise ValidationError({"name": str(error)}) from None
        if name in self._rows_by_name:
            raise ValidationError(
                {
                    "name": _("%(name)s is already in row %(row)d.")
                    % {"name": short(name), "row": self._rows_by_name[name]}
                }
            )
        self._rows_by_name[name] = number
        row["name"] = name

    def after_init_instance(self, instance: Any, new: bool, row: Any, **kwargs: Any) -> None:
        instance.restricted = not new and is_marked(instance)
        for column in self.related_columns():
            column.load(instance)
        self._before = {name: column.get_value(instance) for name, column in self.fields.items()}

    def import_field(self, field: Any, instance: Any, row: Any, is_m2m: bool = False, **kwargs: Any) -> None:
        if row.get(field.column_name, ABSENT) is not ABSENT:
            super().import_field(field, instance, row, is_m2m, **kwargs)

    def validate_instance(
        self, instance: Any, import_validation_errors: Any = None, validate_unique: bool = True
    ) -> None:
        errors = {**(import_validation_errors or {}), **self._refusals(instance)}
        super().validate_instance(instance, errors, validate_unique)

    def after_save_instance(self, instance: Any, row: Any, **kwargs: Any) -> None:
        for column in self.related_columns():
            column.store(instance, self.get_db_connection_name())

    def after_import_row(self, row: Any, row_result: Any, **kwargs: Any) -> None:
        self.changed[kwargs["row_number"]] = self._changes(row_result.instance)
        self.address_changes[kwargs["row_number"]] = self._changed_addresses(row_result.instance)

    def after_import(self, dataset: Any, result: Any, **kwargs: Any) -> None:
        """Do not reset the sequence of primary keys, as the library does: the rows have none."""

    def _changes(self, instance: Any) -> list[str]:
        return [
            name for name, column in self.fields.items() if column.get_value(instance) != self._before[name]
        ]

    def _changed_addresses(self, instance: Any) -> list[str]:
        return []

    def _refusals(self, instance: Any) -> dict[str, Any]:
        """Field -> errors for changes that this user may not make."""
        assert self.permissions is not None
        row = None if instance._state.adding else instance
        verb = "change" if row else "add"
        if not self.permissions.may(verb, type(instance), row):
            add = _("You do not have permission to add definitions.")
            change = _("You do not have permission to change this definition.")
            return {NON_FIELD_ERRORS: [ValidationError(change if row else add)]}
        opened = self._before["restricted"] and not instance.restricted
        if opened and self.fields["groups"].get_value(instance):
            return {"restricted": [ValidationError(UNTICKED_WITH_GROUPS)]}
        readonly = set(self.permissions.readonly(row)) & set(self._changes(instance))
        return {
            name: [ValidationError(_("You do not have permission to change this field."))]
            for name in readonly - (set() if opened else {"restricted"})
        }


class DatabaseResource(DefinitionResource):
    """A database with its routes. The credential is exported as the reference that it is."""

    targets = TargetsColumn()

    class Meta:
        model = Database

    def _changed_addresses(self, instance: Any) -> list[str]:
        """Changes of the fields that decide which login is sent where. They hold no secrets."""
        now = {name: column.get_value(instance) for name, column in self.fields.items()}
        pairs = [(name, self._before[name], now[name]) for name in ("dbname", "user", "credential")]
        before = {target["route"]: address(target) for target in self._before["targets"]}
        after = {target["route"]: address(target) for target in now["targets"]}
        pairs += [(route, before.get(route), after.get(route)) for route in sorted({*before, *after})]
        return [f"{name}: {old or 'none'} → {new or 'none'}" for name, old, new in pairs if old != new]

    def before_import_row(self, row: Any, **kwargs: Any) -> None:
        """Refuse stored targets of those who may not see them: a comparison would tell whether a guess
        is right.
        """
        super().before_import_row(row, **kwargs)
        assert self.permissions is not None
        is_guess = row.get("targets", ABSENT) is not ABSENT and not self.permissions.may("view", Target)
        if is_guess and self.get_queryset().filter(name=row["name"]).exists():
            message = _("You do not have permission to view targets: leave out this column.")
            raise ValidationError({"targets": message})

    def _refusals(self, instance: Any) -> dict[str, Any]:
        refused = super()._refusals(instance)
        before = {target["route"]: target for target in self._before["targets"]}
        now = {target["route"]: target for target in self.fields["targets"].get_value(instance)}
        done = {
            "add": now.keys() - before.keys(),
            "delete": before.keys() - now.keys(),
            "change": {route for route in now.keys() & before.keys() if now[route] != before[route]},
        }
        assert self.permissions is not None
        for verb, routes in done.items():
            if routes and not self.permissions.may(verb, Target):
                message = _("You do not have permission to %(verb)s targets: %(routes)s.")
                refused["targets"] = [
                    ValidationError(message % {"verb": verb, "routes": ", ".join(sorted(routes))})
                ]
        return refused


def address(target: dict[str, Any]) -> str:
    """The fields that are filled in; of those that are true, the name. They hold no secret."""
    filled = {name: value for name, value in target.items() if name != "route" and value not in ("", False)}
    return " ".join(name if value is True else str(value) for name, value in filled.items())


class WorkloadResource(DefinitionResource):
    class Meta:
        model = Workload

    _sql_length = 0

    def before_import_row(self, row: Any, **kwargs: Any) -> None:
        texts = (row.get(name) for name in ("sql", "other_sql"))
        self._sql_length += sum(len(text) for text in texts if isinstance(text, str))
        if self._sql_length > MAX_SQL:
            most = MAX_SQL // 1024
            raise ValidationError({"sql": _("The file has more than %d KiB of SQL: split it.") % most})
        super().before_import_row(row, **kwargs)

    def _refusals(self, instance: Any) -> dict[str, Any]:
        return {**_unreadable(instance, self.permissions), **super()._refusals(instance)}


def _unreadable(workload: Workload, permissions: ImportPermissions | None) -> dict[str, Any]:
    """Field -> errors for what the query without code reads and this user may not.

    The model's own validation tells what is wrong with the query itself.
    """
    assert permissions is not None
    if not workload.model:
        return {}
    try:
        queries.check(workload.query)
    except ValidationError:
        return {}
    try:
        permissions.check_query(workload.query)
    except ValidationError as error:
        return dict(error.error_dict)
    return {}


class BenchmarkResource(DefinitionResource):
    """A benchmark. The workloads and the database that it names must exist."""

    workloads = WorkloadsColumn()

    class Meta:
        model = Benchmark

    def read_older_columns(self, table: ImportTable) -> None:
        """`workload` and `compared_with` are the first and the second of `workloads`."""
        for row in table.rows:
            if "workload" in row and "workloads" not in row:
                both = row.pop("workload"), row.pop("compared_with", None)
                row["workloads"] = [name for name in both if name not in (None, "")]

    def validate_instance(
        self, instance: Any, import_validation_errors: Any = None, validate_unique: bool = True
    ) -> None:
        lacking = {} if self.fields["workloads"].get_value(instance) else {"workloads": [_required()]}
        errors = {**lacking, **(import_validation_errors or {})}
        super().validate_instance(instance, errors, validate_unique)


def _required() -> ValidationError:
    return ValidationError(models.Field.default_error_messages["blank"], code="required")
