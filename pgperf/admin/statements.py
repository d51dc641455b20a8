"""Statements of a server in *Measure a query of mine*: the request for them, and their values."""

from typing import Any

from django import forms
from django.contrib import admin
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext_lazy as _

from pgperf.access import permissions
from pgperf.admin import audit, pages
from pgperf.core import sql_numbered
from pgperf.models import Database
from pgperf.runs import statement_lists

_MOST_VALUES = 200
_MOST_CHARACTERS = 20_000
_MOST_OF_VALUE = 10_000


class StatementValues(forms.Form):
    """A statement with `$1`, and a value for each placeholder."""

    numbered = forms.CharField(label=_("Statement"), widget=forms.HiddenInput, max_length=_MOST_CHARACTERS)

    def __init__(self, numbered: str, data: Any = None) -> None:
        super().__init__(data, initial={"numbered": numbered})
        # The field refuses a longer one; parting it would take seconds first.
        self.sql, self._order = sql_numbered.placeholders(numbered[: _MOST_CHARACTERS + 1])
        for number in sorted(set(self._order))[:_MOST_VALUES]:
            self.fields[_field(number)] = forms.CharField(
                label=f"${number}",
                strip=False,
                max_length=_MOST_OF_VALUE,
                help_text=_('A number, true, false, null, or a text; "42" in quotes is a text.'),
            )

    def clean_numbered(self) -> str:
        if len(self._order) > _MOST_VALUES:
            raise ValidationError(_("At most %d placeholders.") % _MOST_VALUES)
        return str(self.cleaned_data["numbered"])

    @property
    def values(self) -> list[forms.BoundField]:
        """The fields of the placeholders."""
        return [self[name] for name in self.fields if name != "numbered"]

    @property
    def args(self) -> list[Any]:
        """A value for each `%s` of `sql`; None for one that is not given, or that its field refuses.

        A statement that the form refuses has none: a value counts once for each of its placeholders.
        """
        order = self._order if len(self._order) <= _MOST_VALUES else ()
        return [sql_numbered.typed_value(self._given(number)) for number in order]

    def _given(self, number: int) -> str:
        text = self.data.get(_field(number), "") if self.is_bound else ""
        return text if 0 < len(text) <= _MOST_OF_VALUE else "null"


def ask_view(page: admin.ModelAdmin, request: HttpRequest) -> HttpResponse:
    """POST asks a worker for the statements of `database`, and leads back. 403 without the
    permissions to measure and to manage targets.
    """
    user = request.user
    if not (user.is_authenticated and permissions.has_all(user, permissions.READ_STATEMENTS)):
        raise PermissionDenied
    if request.method != "POST":
        return HttpResponseNotAllowed(["POST"])
    chosen = request.POST.get("database", "")
    databases = permissions.visible(Database.objects.all(), user)
    database = get_object_or_404(databases, pk=int(chosen) if _is_key(chosen) else 0)
    statement_lists.ask(database, user)
    audit.log_changed(page, request, database, "Asked its server for statements.")
    return HttpResponseRedirect(pages.url(page, "pgperf_benchmark_measure") + "#pgperf-statements")


def _is_key(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 18


def _field(number: int) -> str:
    return f"value_{number}"
