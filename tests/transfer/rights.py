"""People who import: one who may do everything, and ones who may not."""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Model, QuerySet


@dataclass
class Some:
    """Rights without the verbs in `without`, with some fields fixed."""

    without: Collection[tuple[str, str]] = ()
    fixed_fields: Collection[str] = ()
    hidden: Collection[str] = ()
    asked: list[str] = field(default_factory=list)

    def may(self, verb: str, model: type[Model], row: Model | None = None) -> bool:
        self.asked.append(f"{verb} {model.__name__}")
        return (verb, model.__name__) not in self.without

    def fixed(self, row: Model | None) -> Collection[str]:
        return self.fixed_fields

    def seen(self, rows: QuerySet[Any]) -> QuerySet[Any]:
        return rows.exclude(name__in=self.hidden)


ALL = Some()
