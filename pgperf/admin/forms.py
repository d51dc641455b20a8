"""The benchmark's form: its lists as boxes to tick and as words to type, not as JSON."""

import json
import re
from collections.abc import Sequence
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.core.validators import ProhibitNullCharactersValidator
from django.utils.functional import lazy
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from pgperf.access import permissions
from pgperf.admin.ordered_rows import OrderedRowsField
from pgperf.core import limits
from pgperf.core.layers import LAYERS
from pgperf.core.records import CONNECTION_MODES, MODES
from pgperf.db import validators
from pgperf.db.restriction import UNTICKED_WITH_GROUPS
from pgperf.models import Workload

_WHOLE_NUMBER = re.compile(r"-?[0-9]{1,8}")


class WordsField(forms.CharField):
    """A list typed with commas or spaces between its words."""

    def prepare_value(self, value: Any) -> Any:
        return ", ".join(str(item) for item in value) if isinstance(value, list) else value

    def to_python(self, value: Any) -> Any:
        text = str(value or "")
        ProhibitNullCharactersValidator()(text)
        return text.replace(",", " ").split()

    def validate(self, value: Any) -> None:
        if self.required and not value:
            raise ValidationError(self.error_messages["required"], code="required")

    def run_validators(self, value: Any) -> None:
        """The model field's validators see the list."""

    def has_changed(self, initial: Any, data: Any) -> bool:
        try:
            return bool(self.to_python(self.prepare_value(initial)) != self.to_python(data))
        except ValidationError:
            return True


class NumbersField(WordsField):
    """A list of whole numbers."""

    def to_python(self, value: Any) -> Any:
        words = super().to_python(value)
        if not all(_WHOLE_NUMBER.fullmatch(word) for word in words):
            raise ValidationError(_("Give whole numbers, for example 1, 8."))
        return [int(word) for word in words]


class _Decoder(json.JSONDecoder):
    """Refuses what Python cannot read (a number of thousands of digits, deeply nested lists) as
    invalid JSON.
    """

    def decode(self, s: str, *args: Any) -> Any:
        try:
            return super().decode(s, *args)
        except json.JSONDecodeError:
            raise
        except (ValueError, RecursionError) as error:
            raise json.JSONDecodeError("beyond what can be read", s, 0) from error


class JSONField(forms.JSONField):
    """Django's, with an answer for everything that may be typed."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{**kwargs, "decoder": _Decoder})


def _clients_help() -> str:
    return gettext("%s Several numbers are compared: 1, 8.") % validators.client_limit().help_text


def _layer_choices(chosen: Sequence[str] = ()) -> list[tuple[str, str]]:
    """The layers that connect to a database, and those that are `chosen` already."""
    return [(layer.name, layer.title) for layer in LAYERS.values() if layer.connects or layer.name in chosen]


class DefinitionForm(forms.ModelForm):
    """The form of a definition that groups may hide. Only superusers have the field `restricted`."""

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        unticked = "restricted" in self.changed_data and not cleaned.get("restricted")
        if unticked and not self.instance._state.adding and cleaned.get("groups"):
            self.add_error("restricted", ValidationError(UNTICKED_WITH_GROUPS))
        return cleaned


class BenchmarkForm(DefinitionForm):
    """The admin page names the model and, in its fieldsets, the fields."""

    #: The user who saves it.
    user: Any = None

    workloads = OrderedRowsField(
        Workload.objects.none(),
        label=_("Workloads"),
        most=limits.MOST_WORKLOADS,
        help_text=_(
            "One to %d, in the order of the pages. Each layer runs each of them. Empty choices are left"
            " out; more appear after saving."
        )
        % limits.MOST_WORKLOADS,
    )
    layers = forms.MultipleChoiceField(
        label=_("Layers"),
        choices=_layer_choices,
        widget=forms.CheckboxSelectMultiple,
    )
    modes = forms.MultipleChoiceField(
        label=_("Statement modes"),
        choices=[(mode, mode) for mode in MODES],
        widget=forms.CheckboxSelectMultiple,
    )
    connection_modes = forms.MultipleChoiceField(
        label=_("Connection modes"),
        choices=[(mode, mode.replace("_", " ")) for mode in CONNECTION_MODES],
        widget=forms.CheckboxSelectMultiple,
    )
    routes = WordsField(
        label=_("Routes"), help_text=_("Names of routes, for example socket, tcp, pgbouncer.")
    )
    clients = NumbersField(label=_("Clients"), help_text=lazy(_clients_help, str)())

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "workloads" in self.fields:
            rows = permissions.visible(Workload.objects.all(), self.user)
            self.fields["workloads"].queryset = rows  # type: ignore[attr-defined]
            if self.instance.pk:
                self.initial.setdefault("workloads", self.instance.workloads)
        if "layers" in self.fields:  # not on a page that only shows the benchmark
            self.fields["layers"].choices = _layer_choices(self.instance.layers or ())  # type: ignore[attr-defined]
        if "rounds" in self.fields:  # its label says what the number is
            self.fields["rounds"].help_text = gettext("Timed slices of each variant in a block: %s.") % (
                limits.ROUNDS.bounds
            )

    def _save_m2m(self) -> None:
        super()._save_m2m()  # type: ignore[misc]
        self.instance.set_workloads(self.cleaned_data["workloads"])

    def clean_routes(self) -> list[str]:
        validators.name_list(self.cleaned_data["routes"])
        return list(self.cleaned_data["routes"])

    def clean_clients(self) -> list[int]:
        validators.client_list(self.cleaned_data["clients"])
        return list(self.cleaned_data["clients"])
