"""What travels of each kind of definition: every field of its model but its number, by django-import-export.

A field that a model gets is in the files by itself; one of a kind that cells.py does not know stops the tests.
"""

from collections.abc import Collection
from typing import Any, Protocol

from django.core.exceptions import NON_FIELD_ERRORS, ValidationError
from django.db import models
from django.db.models import QuerySet
from django.utils.translation import gettext as _
from import_export import resources

from pgperf.models import Benchmark, Database, Target, Workload
from pgperf.transfer.cells import cell_of
from pgperf.transfer.columns import Column, HeldColumn, NamesCell, NamesColumn, TargetsColumn
from pgperf.transfer.table import short

#: Fills the columns that a row does not have.
ABSENT: Any = object()
#: Numbers of rows mean nothing elsewhere.
LEFT_OUT = ("id",)


class Rights(Protocol):
    """What the person who imports may do with rows one by one, as the admin's own forms have it."""

    def may(self, verb: str, model: type[models.Model], row: models.Model | None = None) -> bool:
        """`verb` is add, change or delete."""

    def fixed(self, row: models.Model | None) -> Collection[str]:
        """Fields that the form of this row (None: of a new one) shows, but does not let this person change."""

    def seen(self, rows: QuerySet[Any]) -> QuerySet[Any]:
        """Those of another model's rows that this person may name."""


class DefinitionResource(resources.ModelResource):
    """Definitions are known by their names. Rows that change nothing need no right and are not written."""

    class Meta:
        exclude = LEFT_OUT
        import_id_fields = ["name"]
        clean_model_instances = True
        skip_unchanged = True
        skip_html_diff = True
        store_instance = True
        use_transactions = True

    def __init__(self, queryset: QuerySet[Any] | None = None, rights: Rights | None = None) -> None:
        """`queryset`: the rows that this person may see. Without `rights` nothing can be imported."""
        super().__init__()
        self.queryset = queryset
        self.rights = rights
        self.changed: dict[int, list[str]] = {}  # row's position -> names of its columns
        self.moved: dict[int, list[str]] = {}  # row's position -> where a login went, and where it goes now
        self._seen: dict[str, int] = {}
        self._before: Any = None

    @classmethod
    def field_from_django_field(cls, field_name: str, django_field: Any, readonly: bool) -> Column:
        if isinstance(django_field, models.ManyToManyField):
            cell, column = NamesCell(django_field), NamesColumn
        else:
            cell, column = cell_of(django_field), Column
        return column(attribute=field_name, column_name=field_name, widget=cell, readonly=readonly)

    def get_queryset(self) -> QuerySet[Any]:
        rows = self._meta.model._default_manager.all() if self.queryset is None else self.queryset
        return rows.using(self.get_db_connection_name())

    def seen(self, rows: QuerySet[Any]) -> QuerySet[Any]:
        return rows if self.rights is None else self.rights.seen(rows)

    def plain_rows(self) -> list[dict[str, Any]]:
        """What an exported file holds: each row's columns with plain values."""
        data = self.export(self.get_queryset())
        return [dict(zip(data.headers, row, strict=True)) for row in data]

    def held(self) -> list[HeldColumn]:
        return [column for column in self.fields.values() if isinstance(column, HeldColumn)]

    # One row on its way in, in the order of these steps

    def before_import_row(self, row: Any, **kwargs: Any) -> None:
        """The name is what the row is found by, so it is checked first."""
        number = kwargs["numbers"][kwargs["row_number"] - 1]
        try:
            if row.get("name", ABSENT) is ABSENT:
                raise ValueError(_("This column is needed."))
            name = self.fields["name"].clean(row, **kwargs)
        except ValueError as error:
            raise ValidationError({"name": str(error)}) from None
        if name in self._seen:
            raise ValidationError(
                {
                    "name": _("%(name)s is in row %(row)d already.")
                    % {"name": short(name), "row": self._seen[name]}
                }
            )
        self._seen[name] = number
        row["name"] = name

    def after_init_instance(self, instance: Any, new: bool, row: Any, **kwargs: Any) -> None:
        for column in self.held():
            column.hold(instance)
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
        for column in self.held():
            column.store(instance, self.get_db_connection_name())

    def after_import_row(self, row: Any, row_result: Any, **kwargs: Any) -> None:
        self.changed[kwargs["row_number"]] = self._changes(row_result.instance)
        self.moved[kwargs["row_number"]] = self._moves(row_result.instance)

    def after_import(self, dataset: Any, result: Any, **kwargs: Any) -> None:
        """The library would set the sequence of primary keys here, which ours never name."""

    def _changes(self, instance: Any) -> list[str]:
        return [
            name for name, column in self.fields.items() if column.get_value(instance) != self._before[name]
        ]

    def _moves(self, instance: Any) -> list[str]:
        return []

    def _refusals(self, instance: Any) -> dict[str, Any]:
        """Field -> why this person may not save it so."""
        assert self.rights is not None
        row = None if instance._state.adding else instance
        verb = "change" if row else "add"
        if not self.rights.may(verb, type(instance), row):
            missing = _("You may not add new ones.") if verb == "add" else _("You may not change this one.")
            return {NON_FIELD_ERRORS: [ValidationError(missing)]}
        fixed = set(self.rights.fixed(row)) & set(self._changes(instance))
        return {name: [ValidationError(_("You may not change this."))] for name in fixed}


class DatabaseResource(DefinitionResource):
    """A database with its routes. The credential is a reference; it travels as it is written."""

    targets = TargetsColumn()

    class Meta:
        model = Database

    def _moves(self, instance: Any) -> list[str]:
        """What decides where a login goes, and whose it is: references and addresses, no secrets."""
        now = {name: column.get_value(instance) for name, column in self.fields.items()}
        pairs = [(name, self._before[name], now[name]) for name in ("dbname", "user", "credential")]
        before = {target["route"]: _address(target) for target in self._before["targets"]}
        after = {target["route"]: _address(target) for target in now["targets"]}
        pairs += [(route, before.get(route), after.get(route)) for route in sorted({*before, *after})]
        return [f"{name}: {old or 'none'} → {new or 'none'}" for name, old, new in pairs if old != new]

    def _refusals(self, instance: Any) -> dict[str, Any]:
        refused = super()._refusals(instance)
        before = {target["route"]: target for target in self._before["targets"]}
        now = {target["route"]: target for target in self.fields["targets"].get_value(instance)}
        done = {
            "add": now.keys() - before.keys(),
            "delete": before.keys() - now.keys(),
            "change": {route for route in now.keys() & before.keys() if now[route] != before[route]},
        }
        assert self.rights is not None
        for verb, routes in done.items():
            if routes and not self.rights.may(verb, Target):
                message = _("You may not %(verb)s targets: %(routes)s.")
                refused["targets"] = [
                    ValidationError(message % {"verb": verb, "routes": ", ".join(sorted(routes))})
                ]
        return refused


def _address(target: dict[str, Any]) -> str:
    return " ".join(str(value) for name, value in target.items() if name != "route" and value != "")


class WorkloadResource(DefinitionResource):
    class Meta:
        model = Workload


class BenchmarkResource(DefinitionResource):
    """A benchmark names its workload and its usual database, which must be there."""

    class Meta:
        model = Benchmark
