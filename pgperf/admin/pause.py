"""The switch that stops all starts and ends what runs: adding its row pauses, deleting it resumes.

Django's permissions to add and to delete it say who may; its history says who did.
"""

from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from django.contrib import admin, messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from pgperf.admin.access import GroupScopedAdmin
from pgperf.admin.pages import StylesheetMixin, url
from pgperf.core.exceptions import RunConflict
from pgperf.models import Pause
from pgperf.runs import pause, state


class PauseAdmin(StylesheetMixin, GroupScopedAdmin):
    list_display = ("reason_or_none", "by", "since")
    fields = ("reason", "by", "since")
    readonly_fields = ("by", "since")

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Every admin page asks for its list of models; only the pages of the pause query the row.

        A form that was opened before another user's pause may be sent: `response_add` answers it.
        """
        here = str(getattr(request.resolver_match, "url_name", "")).startswith("pgperf_pause_")
        offers = here and request.method != "POST"
        return super().has_add_permission(request) and not (offers and state.pause())

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """A link to it may be older than the pause."""
        may = super().has_add_permission(request) and self.has_view_permission(request)
        if may and request.method != "POST" and state.pause():
            self.message_user(request, gettext("Runs are paused already."), messages.WARNING)
            return HttpResponseRedirect(url(self, "pgperf_pause_changelist"))
        return super().add_view(request, form_url, extra_context)

    def has_change_permission(self, request: HttpRequest, obj: Pause | None = None) -> bool:
        return False

    def save_model(self, request: HttpRequest, obj: Pause, form: Any, change: bool) -> None:
        """Two users may press the button at the same time; the first one's pause stays."""
        with suppress(RunConflict):
            made = pause.begin(request.user.get_username(), obj.reason)
            obj.pk, obj.by, obj.since = made.pk, made.by, made.since

    def log_addition(self, request: HttpRequest, obj: Pause, message: Any) -> Any:
        """No entry for the pause of somebody else."""
        return super().log_addition(request, obj, message) if obj.pk else None

    def response_add(self, request: HttpRequest, obj: Pause, post_url_continue: Any = None) -> HttpResponse:
        if obj.pk:
            return super().response_add(request, obj, post_url_continue)
        self.message_user(request, gettext("Somebody else has paused pgperf already."), messages.WARNING)
        return self.response_post_save_add(request, obj)

    def log_deletions(self, request: HttpRequest, queryset: Any) -> Any:
        """Nothing before the deletion: of two who end a pause, one has ended it."""

    def delete_model(self, request: HttpRequest, obj: Pause) -> None:
        self.delete_queryset(request, [obj])

    def delete_queryset(self, request: HttpRequest, queryset: Iterable[Pause]) -> None:
        ended: Any = list(queryset)
        with suppress(RunConflict):
            pause.end()
            super().log_deletions(request, ended)

    @admin.display(description=_("reason"), ordering="reason")
    def reason_or_none(self, row: Pause) -> str:
        return row.reason or "–"
