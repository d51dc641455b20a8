"""A router for reads of pgperf's tables from a replica that is not there: each of them fails."""

from typing import Any

from django.db.models import Model


class Router:
    def db_for_read(self, model: type[Model], **hints: Any) -> str | None:
        return "replica" if model._meta.app_label == "pgperf" else None
