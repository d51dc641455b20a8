"""A form field of several rows in an order: one select after the other. It needs no script."""

from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

#: Selects that are left empty, to add rows.
_SPARE = 2
_BLANK = ("", "---------")


def keys_of(value: Any) -> list[Any]:
    """The rows that are named: of a form, of a stored row, or a single one of an address."""
    given = [value] if isinstance(value, str | int) else value or ()
    return [key for key in given if key not in (None, "")]


class OrderedSelects(forms.SelectMultiple):
    """Selects with the same name, one for each chosen row and a few more."""

    use_fieldset = True
    most = 1

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        # Somebody who chose too many sees so; each select has all rows.
        chosen = keys_of(value)[: 2 * self.most]
        count = min(self.most, len(chosen) + _SPARE)
        select = forms.Select(choices=[_BLANK, *self.choices])
        own = {**(attrs or {}), "required": False}
        rows = (
            (select.render(name, row, {**own, **self._names(name, at, own)}, renderer),)
            for at, row in enumerate([*chosen, *[""] * count][: max(count, len(chosen))])
        )
        items = format_html_join("", "<li>{}</li>", rows)
        return format_html('<ol class="pgperf-ordered">{}</ol>', items)

    def id_for_label(self, id_: str, index: Any = None) -> str:
        return ""

    def _names(self, name: str, at: int, attrs: dict[str, Any]) -> dict[str, str]:
        first = attrs.get("id", f"id_{name}")
        return {"id": first if at == 0 else f"{first}_{at}", "aria-label": f"{name} {at + 1}"}


class OrderedRowsField(forms.ModelMultipleChoiceField):
    """Up to `most` different rows, cleaned to a list in the order of the form."""

    widget = OrderedSelects

    def __init__(self, queryset: Any, *, most: int, **kwargs: Any) -> None:
        super().__init__(queryset, **kwargs)
        self.most = most
        self.widget.most = most

    def clean(self, value: Any) -> Any:
        """Raises ValidationError for a row twice, too many, or one that is not offered."""
        keys = keys_of(value)
        if len(keys) > self.most:
            raise ValidationError(_("Choose at most %d.") % self.most, code="too_many")
        rows = {str(row.pk): row for row in super().clean(keys)}
        if len(rows) < len(keys):
            raise ValidationError(_("Choose each row once."), code="duplicate")
        return [rows[str(key)] for key in keys]

    def has_changed(self, initial: Any, data: Any) -> bool:
        before, after = keys_of(self.prepare_value(initial)), keys_of(data)
        return list(map(str, before)) != list(map(str, after))
