"""The benchmark's form: its lists as boxes to tick and as words to type, not as JSON."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.core.validators import ProhibitNullCharactersValidator
from django.forms.fields import InvalidJSONInput
from django.utils.functional import lazy
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from pgperf.access import permissions
from pgperf.admin.ordered_choices import OrderedChoiceField, keep_order
from pgperf.admin.ordered_rows import OrderedRowsField
from pgperf.admin.route_boxes import RouteBoxes, RoutesOf
from pgperf.core import limits
from pgperf.core.client_environment import DEFAULT
from pgperf.core.layers import LAYERS
from pgperf.core.records import CONNECTION_MODES, MODES
from pgperf.db import client_environments, validators
from pgperf.db.fields import own_worker
from pgperf.db.restriction import UNTICKED_WITH_GROUPS
from pgperf.models import Benchmark, Database, Target, Workload
from pgperf.reports.preview import missing_layers
from pgperf.reports.run_json import live_workers
from pgperf.transfer.table import check_storable

_NONE: Mapping[str, str] = {}
_RESTRICTED_MEANWHILE = _(
    "Somebody restricted this after you opened the form. Load the page again; to lift the restriction, untick"
    " the box there."
)
_CLOSED = "closed"
#: With the decimals of every float that is a rate.
_RATE = re.compile(r"[0-9]{1,8}(\.[0-9]{1,17})?")
_WHOLE_NUMBER = re.compile(r"-?[0-9]{1,8}")
#: Field of a new benchmark -> what it is for, with an example, shown in the empty field.
_PLACEHOLDERS = {
    "name": _("for commands, such as books-page"),
    "title": _("for people, such as A page of books"),
}


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


class RatesField(WordsField):
    """A list of rates in operations/s; the word "closed" is a closed loop."""

    def prepare_value(self, value: Any) -> Any:
        if not isinstance(value, list):
            return value
        return ", ".join(_CLOSED if rate is None else str(rate).removesuffix(".0") for rate in value)

    def to_python(self, value: Any) -> Any:
        words = super().to_python(value)
        if not all(word == _CLOSED or _RATE.fullmatch(word) for word in words):
            raise ValidationError(
                _("Give rates in operations/s or the word closed, for example closed, 500.")
            )
        return [None if word == _CLOSED else float(word) for word in words]


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

    def to_python(self, value: Any) -> Any:
        """Raises ValidationError for JSON that a database cannot store, as an import does."""
        found = super().to_python(value)
        try:
            check_storable(found)
        except ValueError as error:
            raise ValidationError(gettext("This value %s.") % error) from None
        return found

    def bound_data(self, data: Any, initial: Any) -> Any:
        """What was typed, where a page could not show what it means."""
        found = super().bound_data(data, initial)
        try:
            check_storable(found)
        except ValueError:
            return InvalidJSONInput(data)
        return found


def _clients_help() -> str:
    return gettext("%s Several numbers are compared: 1, 8.") % validators.client_limit().help_text


def _layer_choices(chosen: Sequence[str] = (), missing: Mapping[str, str] = _NONE) -> list[tuple[str, str]]:
    """The layers that reach a database or a web server, and those that are `chosen` already. Those
    that are `missing` say why no worker can run them.
    """
    reaching = [
        layer for layer in LAYERS.values() if layer.connects or layer.over_http or layer.name in chosen
    ]
    text = gettext("%(layer)s (no worker can run it: %(reason)s)")
    titles = {
        name: text % {"layer": LAYERS[name].title, "reason": reason}
        for name, reason in missing.items()
        if name in LAYERS
    }
    return [(layer.name, titles.get(layer.name, layer.title)) for layer in reaching]


def _routes(user: Any) -> list[RoutesOf]:
    """The routes of each database that the user may see."""
    databases = permissions.visible(Database.objects.order_by("name"), user)
    targets = Target.objects.filter(database__in=databases, enabled=True).order_by("pk")
    found: dict[int, list[str]] = {}
    for database, route in targets.values_list("database", "route"):
        found.setdefault(database, []).append(route)
    return [RoutesOf(each.pk, each.name, tuple(found[each.pk])) for each in databases if each.pk in found]


class DefinitionForm(forms.ModelForm):
    """The form of a definition that groups may hide. Only superusers have the field `restricted`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "restricted" in self.fields:
            self.fields["restricted"].show_hidden_initial = True

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        unticked = "restricted" in self.changed_data and not cleaned.get("restricted")
        if unticked and not self.instance._state.adding and cleaned.get("groups"):
            self.add_error("restricted", ValidationError(UNTICKED_WITH_GROUPS))
        if self._would_open_unseen(cleaned):
            self.add_error("restricted", ValidationError(_RESTRICTED_MEANWHILE))
        return cleaned

    def _would_open_unseen(self, cleaned: Mapping[str, Any]) -> bool:
        """Was the row restricted since the form was opened, so that its empty box is an old one?"""
        if "restricted" not in self.fields or self.instance._state.adding or cleaned.get("restricted"):
            return False
        return bool(self.initial.get("restricted")) and "restricted" not in self.changed_data


def _environment_choices() -> list[tuple[str, str]]:
    return [(name, name) for name in client_environments.names()]


class BenchmarkForm(DefinitionForm):
    """The admin page names the model and, in its fieldsets, the fields."""

    #: The user who saves it.
    user: Any = None
    #: The benchmark whose lists keep their order; None: that of the instance.
    original: Benchmark | None = None

    workloads = OrderedRowsField(
        Workload.objects.none(),
        label=_("Workloads"),
        most=limits.MOST_WORKLOADS,
        help_text=_(
            "Each is one operation: SQL, a model query, a callable or a page. Results keep this order. Save"
            " for more choices, %d at most."
        )
        % limits.MOST_WORKLOADS,
    )
    layers = OrderedChoiceField(
        label=_("Layers"),
        choices=_layer_choices,
        widget=forms.CheckboxSelectMultiple,
    )
    modes = OrderedChoiceField(
        label=_("Statement modes"),
        choices=[(mode, mode) for mode in MODES],
        widget=forms.CheckboxSelectMultiple,
    )
    connection_modes = OrderedChoiceField(
        label=_("Connection modes"),
        choices=[(mode, mode.replace("_", " ")) for mode in CONNECTION_MODES],
        widget=forms.CheckboxSelectMultiple,
        help_text=_("A run leaves out the modes that a layer lacks; the page that starts it names them."),
    )
    environments = OrderedChoiceField(
        label=_("Python environments"),
        choices=_environment_choices,
        widget=forms.CheckboxSelectMultiple,
        required=False,
        help_text=_(
            "The Python environments to measure side by side. The first is the baseline. default is the"
            " worker's own; PGPERF['ENVIRONMENTS'] has the others."
        ),
    )
    routes = WordsField(
        label=_("Routes"),
        help_text=_(
            "The targets of the database; its page has their addresses. tcp+1ms is the route tcp with 1 ms"
            " more for each round trip."
        ),
    )
    clients = NumbersField(label=_("Clients"), help_text=lazy(_clients_help, str)())
    rates = RatesField(
        label=_("Rates (operations/s)"),
        required=False,
        help_text=_(
            "Of all clients of a variant together. closed: each client sends its next operation when the last"
            " one ends. Several are compared: closed, 100, 1000."
        ),
    )

    load_hosts = NumbersField(
        label=_("Load hosts"),
        required=False,
        help_text=_(
            "How many hosts make the load together, each by a worker of its own queue. 0: the worker that performs"
            " the run. Several numbers are compared: 0, 1, 4."
        ),
    )
    load_host_names = WordsField(
        label=_("Names of load hosts"),
        required=False,
        help_text=_("Which hosts make the load, in this order. Without names, those that are free."),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        stored = self.original or self.instance
        keep_order(self.fields, stored)
        self._add_placeholders()
        if "workloads" in self.fields:
            rows = permissions.visible(Workload.objects.all(), self.user)
            self.fields["workloads"].queryset = rows  # type: ignore[attr-defined]
            if self.instance.pk:
                self.initial.setdefault("workloads", self.instance.workloads)
        if "layers" in self.fields:  # not on a page that only shows the benchmark
            missing = missing_layers(LAYERS, live_workers())
            self.fields["layers"].choices = _layer_choices(self.instance.layers or (), missing)  # type: ignore[attr-defined]
        if "environments" in self.fields:
            self.fields["environments"].required = not self._has_one_environment()
            if self._has_one_environment():
                self.fields["environments"].widget = forms.MultipleHiddenInput()
        if "routes" in self.fields:
            self.fields["routes"].widget = RouteBoxes(_routes(self.user), stored.routes)
        if "rounds" in self.fields:  # its label says what the number is
            self.fields["rounds"].help_text = gettext("Timed slices of each variant in a block: %s.") % (
                limits.ROUNDS.bounds
            )

    def _add_placeholders(self) -> None:
        for name in _PLACEHOLDERS.keys() & self.fields.keys():
            self.fields[name].widget.attrs["placeholder"] = _PLACEHOLDERS[name]

    def _has_one_environment(self) -> bool:
        """Is there nothing to choose, and nothing chosen that is gone?"""
        return {*client_environments.names(), *self.instance.environments} == {DEFAULT}

    def _save_m2m(self) -> None:
        super()._save_m2m()  # type: ignore[misc]
        self.instance.set_workloads(self.cleaned_data["workloads"])

    def clean_routes(self) -> list[str]:
        validators.name_list(self.cleaned_data["routes"])
        return list(self.cleaned_data["routes"])

    def clean_environments(self) -> list[str]:
        return list(self.cleaned_data["environments"]) or [DEFAULT]

    def clean_rates(self) -> list[float | None]:
        rates = list(self.cleaned_data["rates"]) or [None]
        validators.rate_list(rates)
        return rates

    def clean_load_hosts(self) -> list[int]:
        counts = list(self.cleaned_data["load_hosts"]) or own_worker()
        validators.load_host_counts(counts)
        return counts

    def clean_load_host_names(self) -> list[str]:
        validators.load_host_names(list(self.cleaned_data["load_host_names"]))
        return list(self.cleaned_data["load_host_names"])

    def clean_clients(self) -> list[int]:
        validators.client_list(self.cleaned_data["clients"])
        return list(self.cleaned_data["clients"])
