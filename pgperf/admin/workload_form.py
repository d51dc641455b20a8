"""The workload's form: SQL, a callable to choose from those registered, or a query of a model without code."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from pgperf.admin.forms import JSONField, WordsField
from pgperf.models import Workload
from pgperf.workloads import discovery, queries

_NONE = [("", "---------")]


class WorkloadForm(forms.ModelForm):
    orm = forms.ChoiceField(label=_("Registered callable"), required=False)
    model = forms.ChoiceField(label=_("Model"), required=False)
    select_related = WordsField(
        label=_("Select related"),
        required=False,
        help_text=_("Names of relations to one: author, publisher."),
    )
    prefetch_related = WordsField(
        label=_("Prefetch related"), required=False, help_text=_("Names of relations to many: books.")
    )
    ordering = WordsField(label=_("Ordering"), required=False, help_text=_("Names of fields: -year, title."))
    values = WordsField(
        label=_("Values"), required=False, help_text=_("Fields of a values list; empty: all.")
    )

    class Meta:
        model = Workload
        fields = (
            "name", "title", "sql", "args", "orm", "model", "fetch", "lookup", "select_related", "prefetch_related",
            "ordering", "values", "limit", "other_sql", "other_args", "other_orm", "fixture",
        )  # fmt: skip
        field_classes = dict.fromkeys(("args", "other_args", "lookup"), JSONField)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._offer("orm", discovery.names(), _registered_help())
        self._offer("model", queries.models(), _("A query of it, described by the fields below."))

    def _offer(self, name: str, choices: list[str], help_text: Any) -> None:
        """What there is to choose, and what the row has already, whether it is there or not."""
        if name not in self.fields:  # somebody may only look
            return
        field = self.fields[name]
        assert isinstance(field, forms.ChoiceField)
        own = getattr(self.instance, name)
        offered = [*choices, *([own] if own and own not in choices else [])]
        field.choices = [*_NONE, *((each, each) for each in offered)]
        field.help_text = help_text

    def clean_args(self) -> Any:
        return self.cleaned_data["args"] or []

    def clean_other_args(self) -> Any:
        return self.cleaned_data["other_args"] or []

    def clean_lookup(self) -> Any:
        return self.cleaned_data["lookup"] or {}


def _registered_help() -> str:
    """How to register one, and which modules could not be asked."""
    lines: list[Any] = [_("Registered with @workload in pgperf_workloads.py of an installed app.")]
    lines += [_("%s.") % failure for failure in discovery.discover()]
    return " ".join(str(line) for line in lines)
