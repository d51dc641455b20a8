"""The token of a form that starts a run: with it, a double click finds the run of the first click."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.validators import RegexValidator
from django.http import HttpRequest
from django.utils.translation import gettext

from pgperf.models import Run


class TokenField(forms.CharField):
    """Hidden. A browser that goes back must not put the used token into the new form."""

    def __init__(self, **kwargs: Any) -> None:
        hidden = forms.HiddenInput(attrs={"autocomplete": "off"})
        super().__init__(widget=hidden, validators=[RegexValidator(r"\A[0-9a-f]{32}\Z")], **kwargs)


def tell_of_earlier(page: admin.ModelAdmin, request: HttpRequest, run: Run) -> None:
    """Say that the form was used before: what it asked for now may differ from that run."""
    text = gettext(
        "This form has started run %s already; nothing more was started or saved. Open the form again to "
        "start another run."
    )
    page.message_user(request, text % run.pk, messages.WARNING)
