"""Boxes to tick for a list whose order counts: its first item is the baseline of comparisons.

A page has its boxes in an order of its own, and a browser sends them in that order.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django import forms
from django.db.models import Model


def in_order(chosen: Iterable[str], stored: Sequence[str]) -> list[str]:
    """What is still chosen in its stored order, then what is new in the order of the page."""
    once, before = dict.fromkeys(chosen), set(stored)
    return [*(item for item in stored if item in once), *(item for item in once if item not in before)]


class OrderedChoiceField(forms.MultipleChoiceField):
    """Its value keeps the order of `stored`."""

    stored: Sequence[str] = ()

    def to_python(self, value: Any) -> list[str]:
        return in_order(super().to_python(value), self.stored)


def keep_order(fields: Mapping[str, forms.Field], row: Model) -> None:
    """Let each of these fields keep the order that the row has."""
    for name, field in fields.items():
        if isinstance(field, OrderedChoiceField):
            field.stored = getattr(row, name)
