"""Workers, as they described themselves at their start: read-only pages."""

from typing import Any

from django.contrib import admin
from django.db.models import BooleanField, Case, QuerySet, When
from django.http import HttpRequest
from django.template.response import TemplateResponse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from pgperf.admin.access import GroupScopedAdmin
from pgperf.admin.pages import StylesheetMixin
from pgperf.core.layers import LAYERS, connects
from pgperf.models import Worker
from pgperf.reports.labels import layer_title
from pgperf.reports.run_json import live_workers, worker_command
from pgperf.runs import broker, state

_AGENT = _("none: this is the agent on a database host")


class WorkerAdmin(StylesheetMixin, GroupScopedAdmin):
    change_list_template = "admin/pgperf/worker/change_list.html"
    list_display = ("hostname", "alive", "queue", "layers_summary", "last_seen")
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
        online = (*live_workers(), *state.live_agents(), *state.live_load_workers())
        alive = When(pk__in=[worker.pk for worker in online], then=True)
        return (
            super()
            .get_queryset(request)
            .annotate(is_alive=Case(alive, default=False, output_field=BooleanField()))
        )

    @admin.display(description=_("online"), boolean=True, ordering="is_alive")
    def alive(self, worker: Worker) -> bool:
        return bool(getattr(worker, "is_alive", False))

    @admin.display(description=_("layers"))
    def layers_summary(self, worker: Worker) -> str:
        """All, or all but those that it cannot run."""
        if _is_agent(worker):
            return str(_AGENT)
        missing = ", ".join(layer_title(name) for name, reason in _layers(worker) if reason)
        return gettext("all but %s") % missing if missing else gettext("all")

    @admin.display(description=_("can run"))
    def can_run(self, worker: Worker) -> str:
        if _is_agent(worker):
            return str(_AGENT)
        return "; ".join(layer_title(name) for name, reason in _layers(worker) if not reason) or "–"

    @admin.display(description=_("cannot run"))
    def cannot_run(self, worker: Worker) -> str:
        return "; ".join(f"{layer_title(name)}: {why}" for name, why in _layers(worker) if why) or "–"


def _is_agent(worker: Worker) -> bool:
    return worker.queue.startswith(broker.agent_queue(""))


def _layers(worker: Worker) -> list[tuple[str, str]]:
    """The layers that connect to a database, in the order of tables, each with why the worker cannot
    run it.
    """
    order = [*LAYERS, *(name for name in worker.layers if name not in LAYERS)]
    return [(name, worker.layers[name]) for name in order if name in worker.layers and connects(name)]
