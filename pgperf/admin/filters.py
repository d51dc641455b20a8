"""Filters of lists with titles of their own: the name of the field reads badly after "By"."""

from typing import Any

from django.contrib import admin
from django.utils.translation import gettext_lazy as _


class _Titled(admin.FieldListFilter):
    own_title: Any = ""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.title = self.own_title


class RestrictedFilter(_Titled, admin.BooleanFieldListFilter):
    own_title = _("restricted access")


class FixturesFilter(_Titled, admin.BooleanFieldListFilter):
    own_title = _("permission for fixtures")


class OutcomeFilter(_Titled, admin.ChoicesFieldListFilter):
    own_title = _("last outcome")
