"""Converts one field of a definition to a cell of a file and back, as strictly as a form.

A cell holds a plain value: text, a number, a boolean, a list or the name of another definition.
Cells of a spreadsheet (`flat`) may hold any of these as text. A wrong value raises ValueError with
a message for the user.
"""

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from django.db import models, router
from django.db.models import QuerySet
from django.utils.translation import gettext as _
from import_export.widgets import Widget

from pgperf.transfer.table import check_storable, short
from pgperf.transfer.tree import from_json

_TRUE = ("true", "1", "yes")
_FALSE = ("false", "0", "no")
#: A float holds every whole number below it.
_WHOLE_FLOATS = 2**53


class Reading(NamedTuple):
    """How to read a file: whether it is a spreadsheet, and which related rows the user may name."""

    flat: bool = False
    visible: Callable[[QuerySet[Any]], QuerySet[Any]] = lambda rows: rows


PLAIN = Reading()


class FieldCell(Widget):
    """The cell of one model field. Subclasses convert and validate in `read`."""

    def __init__(self, field: Any) -> None:
        super().__init__(coerce_to_string=False)
        self.field = field

    def clean(self, value: Any, row: Any = None, reading: Reading = PLAIN, **_kwargs: Any) -> Any:
        """The field's value. Raises ValueError."""
        if reading.flat and value in (None, ""):
            return self.blank()
        if value is None and self.field.null:
            return None
        check_storable(value)
        return self.read(value, reading)

    def render(self, value: Any, obj: Any = None, **_kwargs: Any) -> Any:
        return value

    def blank(self) -> Any:
        """The value of an empty cell of a spreadsheet."""
        if self.field.null:
            return None
        if self.field.has_default():
            return self.field.get_default()
        raise ValueError(_("This value is required."))

    def read(self, value: Any, reading: Reading) -> Any:
        raise NotImplementedError

    def hint(self) -> str:
        """How to write a value, shown on the import page."""
        return str(self.field.help_text)


class TextCell(FieldCell):
    def hint(self) -> str:
        choices = [str(value) for value, _label in self.field.flatchoices if value]
        return _("One of: %s.") % ", ".join(choices) if choices else super().hint() or _("Text.")

    def blank(self) -> Any:
        return None if self.field.null else ""

    def read(self, value: Any, reading: Reading) -> str:
        if reading.flat and type(value) is int:
            return str(value)
        if not isinstance(value, str):
            raise ValueError(_("Enter text."))
        if value.isspace() and not self.field.blank:  # as forms do, which strip the text
            raise ValueError(_("This value is required."))
        return value


class BoolCell(FieldCell):
    def hint(self) -> str:
        return f"{_('true or false.')} {super().hint()}"

    def read(self, value: Any, reading: Reading) -> bool:
        if isinstance(value, bool):
            return value
        word = str(value).lower() if reading.flat else ""
        if word not in _TRUE + _FALSE:
            raise ValueError(_("Enter true or false."))
        return word in _TRUE


class IntCell(FieldCell):
    def hint(self) -> str:
        return f"{_('A whole number.')} {super().hint()}"

    def read(self, value: Any, reading: Reading) -> int:
        if type(value) is int:
            return value
        if reading.flat and isinstance(value, float) and value.is_integer():
            return int(value)
        if reading.flat and isinstance(value, str) and re.fullmatch(r"-?[0-9]{1,18}", value):
            return int(value)
        raise ValueError(_("Enter a whole number."))


class FloatCell(FieldCell):
    def read(self, value: Any, reading: Reading) -> float:
        if isinstance(value, float) or (type(value) is int and abs(value) < _WHOLE_FLOATS):
            return float(value)
        if reading.flat and isinstance(value, str) and re.fullmatch(r"-?[0-9]{1,18}(\.[0-9]{1,18})?", value):
            return float(value)
        raise ValueError(_("Enter a number."))


class JsonCell(FieldCell):
    """A list or an object; in a spreadsheet, its JSON text."""

    def hint(self) -> str:
        kind = _("An object.") if self.field.get_default() == {} else _("A list.")
        return f"{kind} {super().hint()}"

    def read(self, value: Any, reading: Reading) -> Any:
        if reading.flat and isinstance(value, str):
            value = from_json(value)
            check_storable(value)
        return value


class NameCell(FieldCell):
    """Another definition, given by name."""

    def hint(self) -> str:
        named = _("The name of a %s.") % self.field.related_model._meta.verbose_name
        return f"{named} {super().hint()}"

    def render(self, value: Any, obj: Any = None, **_kwargs: Any) -> Any:
        return None if value is None else value.name

    def read(self, value: Any, reading: Reading) -> Any:
        return self.named([value], reading)[0]

    def named(self, values: list[Any], reading: Reading) -> list[Any]:
        """The definitions of these names, each once. Raises ValueError for the first unknown name."""
        model = self.field.related_model
        cell = TextCell(model._meta.get_field("name"))
        names = dict.fromkeys(cell.read(value, reading) for value in values)
        rows = reading.visible(model._default_manager.using(router.db_for_write(model)))
        found = {row.name: row for row in rows.filter(name__in=names)}
        unknown = next((name for name in names if name not in found), None)
        if unknown is not None:
            raise ValueError(
                _("There is no %(kind)s %(name)s. Import it or add it first.")
                % {"kind": model._meta.verbose_name, "name": short(unknown)}
            )
        return [found[name] for name in names]


CELLS: tuple[tuple[type[models.Field], type[FieldCell]], ...] = (
    (models.BooleanField, BoolCell),
    (models.IntegerField, IntCell),
    (models.FloatField, FloatCell),
    (models.JSONField, JsonCell),
    (models.ForeignKey, NameCell),
    (models.CharField, TextCell),
    (models.TextField, TextCell),
)


def cell_of(field: Any) -> FieldCell:
    """Raises TypeError for a field type that CELLS does not list."""
    for kind, cell in CELLS:
        if isinstance(field, kind):
            return cell(field)
    raise TypeError(f"pgperf.transfer.cells has no cell for {type(field).__name__} {field}")
