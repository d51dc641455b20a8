"""Model fields for one number of a benchmark: default, help text, bounds and refusal come from its
Limit.
"""

from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.db import models

from pgperf.core.limits import Limit


class _Limited(models.Field):
    """A number within `limit`. To migrations it is Django's own field."""

    _form_class: type[forms.IntegerField] = forms.IntegerField

    def __init__(self, *args: Any, limit: Limit[Any] | None = None, **kwargs: Any) -> None:
        self.limit = limit
        own = {"default": limit.default, "help_text": limit.help_text} if limit else {}
        super().__init__(*args, **{**own, **kwargs})

    def deconstruct(self) -> Any:
        name, _path, args, kwargs = super().deconstruct()
        return name, f"django.db.models.{self.get_internal_type()}", args, kwargs

    @property
    def validators(self) -> list[Any]:
        """Django adds the bounds of the column, which would refuse a number a second time."""
        return [self._within] if self.limit else super().validators

    def _within(self, value: float) -> None:
        if self.limit and not self.limit.allows(value):
            raise ValidationError(self.limit.remedy)

    def formfield(self, **kwargs: Any) -> Any:
        """The form field has the same bounds, so that a browser shows them before the server
        refuses.
        """
        if self.limit is None:
            return super().formfield(**kwargs)
        lowest = 0 if self.limit.zero_means else self.limit.low
        remedy = self.limit.remedy.replace("%", "%%")  # Django fills in the bounds
        refusal = {"min_value": remedy, "max_value": remedy}
        own = {"min_value": lowest, "max_value": self.limit.high, "error_messages": refusal}
        return super().formfield(**{"form_class": self._form_class, **own, **kwargs})


class LimitedField(_Limited, models.PositiveIntegerField):
    """A whole number."""


class LimitedFloatField(_Limited, models.FloatField):
    """A number with decimals."""

    _form_class = forms.FloatField
