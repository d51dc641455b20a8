"""Columns of a file: a cell, and whether its value is on the definition or on related rows."""

from typing import Any

from django.core.exceptions import ValidationError
from django.db import models
from django.utils.translation import gettext as _
from import_export.fields import Field

from pgperf.core import limits
from pgperf.models import BenchmarkWorkload, Target
from pgperf.transfer.cells import PLAIN, FieldCell, NameCell, Reading, cell_of
from pgperf.transfer.table import check_storable, first_duplicate, short

#: Items of a list, each of which costs queries: names of definitions, and targets of a database.
MAX_NAMES = 100
MAX_TARGETS = 32
#: Targets of all databases of a file, each of which the form's rules check.
MAX_TARGETS_IN_FILE = 600


class FieldColumn(Field):
    """One field of the definition."""

    def clean(self, row: Any, **kwargs: Any) -> Any:
        return self.widget.clean(row[self.column_name], row=row, **kwargs)


class RelatedColumn(FieldColumn):
    """A value on related rows: kept in memory until the definition is saved, then written by
    `store`.
    """

    def load(self, instance: Any) -> None:
        """Keep the stored value, so that a change can be detected."""
        vars(instance)[self._pending] = self.stored(instance) if instance.pk else self.empty()

    def get_value(self, instance: Any) -> Any:
        pending = vars(instance).get(self._pending)
        return self.stored(instance) if pending is None else pending

    def save(self, instance: Any, row: Any, is_m2m: bool = False, **kwargs: Any) -> None:
        vars(instance)[self._pending] = self.clean(row, **kwargs)

    @property
    def _pending(self) -> str:
        return f"_pending_{self.attribute}"

    def empty(self) -> Any:
        return []

    def stored(self, instance: Any) -> Any:
        raise NotImplementedError

    def store(self, instance: Any, using: str) -> None:
        raise NotImplementedError


class NamesCell(NameCell):
    """Several definitions, given as a list of names."""

    def hint(self) -> str:
        return f"{_('A list of names.')} {self.field.help_text}"

    def blank(self) -> Any:
        return []

    def render(self, value: Any, obj: Any = None, **_kwargs: Any) -> Any:
        return [row.name for row in value]

    def read(self, value: Any, reading: Reading) -> Any:
        names = as_list(value, reading)
        if len(names) > MAX_NAMES:
            raise ValueError(_("Give at most %d names.") % MAX_NAMES)
        return sorted(self.named(names, reading), key=lambda row: row.name)


class WorkloadsCell(NamesCell):
    """A benchmark's workloads: a list of names, in order."""

    def __init__(self) -> None:
        super().__init__(BenchmarkWorkload._meta.get_field("workload"))

    def hint(self) -> str:
        return _("A list of names of workloads, in order: 1 to %d.") % limits.MOST_WORKLOADS

    def clean(self, value: Any, row: Any = None, reading: Reading = PLAIN, **_kwargs: Any) -> Any:
        if reading.flat and value in (None, ""):
            return []
        check_storable(value)
        return self.read(value, reading)

    def read(self, value: Any, reading: Reading) -> Any:
        names = as_list(value, reading)
        if len(names) > limits.MOST_WORKLOADS:
            raise ValueError(_("Give at most %d names.") % limits.MOST_WORKLOADS)
        rows = self.named(names, reading)
        if len(rows) < len(names):
            raise ValueError(_("%s appears twice.") % short(first_duplicate(names)))
        return rows


class WorkloadsColumn(RelatedColumn):
    """A benchmark's workloads."""

    def __init__(self) -> None:
        super().__init__(attribute="workloads", column_name="workloads", widget=WorkloadsCell())

    def stored(self, instance: Any) -> Any:
        return instance.workloads if instance.pk else []

    def store(self, instance: Any, using: str) -> None:
        instance.set_workloads(self.get_value(instance))


class NamesColumn(RelatedColumn):
    """A many-to-many relation, read and written as forms do: its rows may be in another database."""

    def stored(self, instance: Any) -> Any:
        found = instance._meta.get_field(self.attribute).value_from_object(instance)
        return sorted(found, key=lambda row: row.name)

    def store(self, instance: Any, using: str) -> None:
        instance._meta.get_field(self.attribute).save_form_data(instance, self.get_value(instance))


class TargetsCell(FieldCell):
    """The routes to a database: a list of objects, sorted by route."""

    def __init__(self) -> None:
        super().__init__(models.JSONField(default=list))
        self.cells = {field.name: cell_of(field) for field in target_fields()}
        self._in_file = 0

    def hint(self) -> str:
        hint = _("A list of objects with %s. The import removes routes that the list omits.")
        return hint % ", ".join(self.cells)

    def blank(self) -> Any:
        return []

    def read(self, value: Any, reading: Reading) -> list[dict[str, Any]]:
        items = as_list(value, reading)
        if len(items) > MAX_TARGETS:
            raise ValueError(_("A database has at most %d targets.") % MAX_TARGETS)
        self._in_file += len(items)
        if self._in_file > MAX_TARGETS_IN_FILE:
            raise ValueError(_("The file has more than %d targets: split it.") % MAX_TARGETS_IN_FILE)
        found = [self._target(at, item) for at, item in enumerate(items, 1)]
        doubled = first_duplicate(target["route"] for target in found)
        if doubled is not None:
            raise ValueError(_("Route %s appears twice.") % short(doubled))
        return sorted(found, key=lambda target: str(target["route"]))

    def _target(self, at: int, item: Any) -> dict[str, Any]:
        """All values of one target, including defaults."""
        if not isinstance(item, dict):
            raise ValueError(_("Target %d is not an object.") % at)
        unknown = [name for name in item if name not in self.cells]
        if unknown:
            raise ValueError(
                _("Target %(at)d: %(name)s is unknown. Use one of %(names)s.")
                % {"at": at, "name": short(unknown[0]), "names": ", ".join(self.cells)}
            )
        return plain_target(self._cleaned(at, item))

    def _cleaned(self, at: int, item: dict[str, Any]) -> Target:
        target = Target()
        for name, value in item.items():
            try:
                setattr(target, name, self.cells[name].clean(value))
            except ValueError as error:
                raise ValueError(_target_error(at, name, str(error))) from None
        try:
            target.full_clean(exclude=["database"])
        except ValidationError as error:
            name, messages = next(iter(error.message_dict.items()))
            raise ValueError(_target_error(at, name, " ".join(messages))) from None
        return target


class TargetsColumn(RelatedColumn):
    """A database's targets. The import removes those that the file omits."""

    def __init__(self) -> None:
        super().__init__(attribute="targets", column_name="targets", widget=TargetsCell())

    def stored(self, instance: Any) -> Any:
        found = (plain_target(target) for target in instance.targets.all())
        return sorted(found, key=lambda target: str(target["route"]))

    def store(self, instance: Any, using: str) -> None:
        wanted = {target["route"]: target for target in self.get_value(instance)}
        targets = Target.objects.using(using).filter(database=instance)
        kept = {target.route: plain_target(target) for target in targets}
        targets.filter(route__in=kept.keys() - wanted.keys()).delete()
        for route in kept.keys() & wanted.keys():
            if kept[route] != wanted[route]:
                targets.filter(route=route).update(**wanted[route])
        fresh = [target for route, target in wanted.items() if route not in kept]
        Target.objects.using(using).bulk_create(Target(database=instance, **target) for target in fresh)


def target_fields() -> list[Any]:
    return [field for field in Target._meta.concrete_fields if field.name not in ("id", "database")]


def plain_target(target: Target) -> dict[str, Any]:
    return {field.name: field.value_from_object(target) for field in target_fields()}


def as_list(value: Any, reading: Reading) -> list[Any]:
    """The value as a list.

    Raises ValueError unless it is a list or, in a spreadsheet, JSON text of one.
    """
    if reading.flat and isinstance(value, str):
        value = cell_of(models.JSONField(default=list)).clean(value, reading=reading)
    if not isinstance(value, list):
        raise ValueError(_("Enter a JSON list."))
    return value


def _target_error(at: int, name: str, message: str) -> str:
    return _("Target %(at)d, %(name)s: %(message)s") % {"at": at, "name": name, "message": message}
