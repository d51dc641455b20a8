"""Permissions of users who import: all, or some."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.core.exceptions import ValidationError
from django.db.models import Model, QuerySet


@dataclass
class SomePermissions:
    """All permissions except those in `without`, with some read-only fields and hidden rows."""

    without: Collection[tuple[str, str]] = ()
    readonly_fields: Collection[str] = ()
    hidden: Collection[str] = ()
    unreadable: Collection[str] = ()
    asked: list[str] = field(default_factory=list)

    def may(self, verb: str, model: type[Model], row: Model | None = None) -> bool:
        self.asked.append(f"{verb} {model.__name__}")
        return (verb, model.__name__) not in self.without

    def readonly(self, row: Model | None) -> Collection[str]:
        return self.readonly_fields

    def visible(self, rows: QuerySet[Any]) -> QuerySet[Any]:
        return rows.exclude(name__in=self.hidden)

    def check_query(self, query: Mapping[str, Any]) -> None:
        if query["model"] in self.unreadable:
            raise ValidationError({"model": f"{query['model']} is not for you."})


ALL = SomePermissions()
