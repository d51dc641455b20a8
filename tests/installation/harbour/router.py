"""A database router with one database per app."""

from typing import Any

from django.db.models import Model

HOMES = {"pgperf": "measurements", "freight": "warehouse"}


class Router:
    def db_for_read(self, model: type[Model], **hints: Any) -> str:
        return HOMES.get(model._meta.app_label, "default")

    db_for_write = db_for_read

    def allow_relation(self, one: Model, other: Model, **hints: Any) -> bool:
        return True

    def allow_migrate(self, db: str, app_label: str, **hints: Any) -> bool:
        return db == HOMES.get(app_label, "default")
