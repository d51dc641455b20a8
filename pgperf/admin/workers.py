"""Workers, as they described themselves at their start: read-only pages."""

from typing import Any

from django.contrib import admin
from django.db.models import BooleanField, Case, QuerySet, When
from django.http import HttpRequest
from django.template.response import TemplateResponse
from django.utils.translation import gettext_lazy as _

from pgperf.admin.access import GroupScopedAdmin
from pgperf.admin.pages import StylesheetMixin
from pgperf.core.layers import LAYERS
from pgperf.models import Worker
from pgperf.reports.run_json import live_workers, worker_command
from pgperf.runs import broker, state


class WorkerAdmin(StylesheetMixin, GroupScopedAdmin):
    change_list_template = "admin/pgperf/worker/change_list.html"
    list_display = ("hostname", "alive", "queue", "can_run", "last_seen")
    list_filter = ("queue",)
    search_fields = ("hostname",)
    readonly_fields = ("can_run", "cannot_run")
    fields = ("hostname", "queue", "last_seen", "can_run", "cannot_run", "versions")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Worker | None = None) -> bool:
        return False

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> TemplateResponse:
        hint = {"workers_alive": bool(live_workers()), "worker_command": worker_command()}
        return super().changelist_view(request, {**(extra_context or {}), **hint})  # type: ignore[return-value]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Worker]:
        alive = When(pk__in=[worker.pk for worker in (*live_workers(), *state.live_agents())], then=True)
        return (
            super()
            .get_queryset(request)
            .annotate(is_alive=Case(alive, default=False, output_field=BooleanField()))
        )

    @admin.display(description=_("online"), boolean=True, ordering="is_alive")
    def alive(self, worker: Worker) -> bool:
        return bool(getattr(worker, "is_alive", False))

    @admin.display(description=_("can run"))
    def can_run(self, worker: Worker) -> str:
        if worker.queue.startswith(broker.agent_queue("")):
            return str(_("nothing: this is the agent on a database host"))
        return ", ".join(_titles(name for name, reason in worker.layers.items() if not reason)) or "–"

    @admin.display(description=_("cannot run"))
    def cannot_run(self, worker: Worker) -> str:
        reasons = [
            f"{LAYERS[name].title if name in LAYERS else name}: {why}"
            for name, why in worker.layers.items()
            if why
        ]
        return "; ".join(reasons) or "–"


def _titles(names: Any) -> list[str]:
    return [LAYERS[name].title if name in LAYERS else name for name in names]
