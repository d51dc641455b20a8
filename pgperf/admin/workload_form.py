"""The form of a workload: SQL, a registered callable, a model query without code, or a page."""

from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from pgperf.admin.forms import DefinitionForm, JSONField, WordsField
from pgperf.conf import get_settings
from pgperf.models import Workload
from pgperf.workloads import discovery, queries, query_access

_NONE = [("", "---------")]


class WorkloadForm(DefinitionForm):
    #: The user who saves it.
    user: Any = None

    orm = forms.ChoiceField(label=_("Registered callable"), required=False)
    model = forms.ChoiceField(label=_("Model"), required=False)
    page_user = forms.ChoiceField(label=_("Page user"), required=False)
    select_related = WordsField(
        label=_("Select related"),
        required=False,
        help_text=_("Foreign keys to join, for example author, publisher."),
    )
    prefetch_related = WordsField(
        label=_("Prefetch related"), required=False, help_text=_("Relations to prefetch, for example books.")
    )
    ordering = WordsField(
        label=_("Ordering"), required=False, help_text=_("Fields to order by, for example -year, title.")
    )
    values = WordsField(
        label=_("Values"),
        required=False,
        help_text=_("Fields that values_list() returns. Empty: all fields."),
    )

    class Meta:
        model = Workload
        fields = (
            "name", "title", "sql", "args", "orm", "model", "fetch", "lookup", "select_related", "prefetch_related",
            "ordering", "values", "limit", "path", "method", "page_user", "one_capture",
            "other_sql", "other_args", "other_orm", "bulk", "fixture",
            "groups", "restricted",
        )  # fmt: skip
        field_classes = dict.fromkeys(("args", "other_args", "lookup"), JSONField)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._offer("orm", discovery.names(), _registered_help())
        self._offer("page_user", get_settings().PAGE_USERS, _("Who sees the page. Empty: a visitor."))
        self._offer("model", queries.models(), _("The model to query, as the fields below describe."))

    def _offer(self, name: str, choices: list[str], help_text: Any) -> None:
        """Offer `choices`, and the stored value even if it is no longer among them."""
        if name not in self.fields:  # the user may only view the workload
            return
        field = self.fields[name]
        assert isinstance(field, forms.ChoiceField)
        own = getattr(self.instance, name)
        offered = [*choices, *([own] if own and own not in choices else [])]
        field.choices = [*_NONE, *((each, each) for each in offered)]
        field.help_text = help_text

    def _post_clean(self) -> None:
        """Ask for the user's permissions once the query fits its model."""
        super()._post_clean()  # type: ignore[misc]
        if not self.errors and self.instance.model:
            try:
                query_access.check_user(self.instance.query, self.user)
            except ValidationError as error:
                self.add_error(None, error)

    def clean_args(self) -> Any:
        return self.cleaned_data["args"] or []

    def clean_other_args(self) -> Any:
        return self.cleaned_data["other_args"] or []

    def clean_lookup(self) -> Any:
        return self.cleaned_data["lookup"] or {}


def _registered_help() -> str:
    """How to register a callable, and the modules that failed to import."""
    lines: list[Any] = [
        _("A callable that an installed app registers with @workload in its pgperf_workloads.py.")
    ]
    lines += [_("%s.") % failure for failure in discovery.discover()]
    return " ".join(str(line) for line in lines)
