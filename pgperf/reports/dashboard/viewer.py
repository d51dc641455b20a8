"""Whom a dashboard is for: what the admin site shows to the user, narrowed by groups."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self, TypeVar

from django.apps import apps
from django.db.models import Model, QuerySet

from pgperf.access import permissions
from pgperf.models import Benchmark

M = TypeVar("M", bound=Model)
Perms = Mapping[str, bool]


@dataclass(frozen=True)
class Viewer:
    """A user, and what the user may do with pgperf's models that the admin site has: add, change,
    delete and view. A model with which the user may do nothing is not among them.
    """

    user: Any
    models: Mapping[type[Model], Perms]

    @classmethod
    def of(cls, request: Any, site: Any) -> Self:
        """By the site's pages, as its own index asks them: its navigation may have other entries."""
        models = filter(site.is_registered, apps.get_app_config("pgperf").get_models())
        pages = map(site.get_model_admin, models)
        shown = {each.model: each.get_model_perms(request) for each in pages if _is_shown(each, request)}
        return cls(request.user, {model: perms for model, perms in shown.items() if any(perms.values())})

    def sees(self, model: type[Model]) -> bool:
        return self._may("view", model)

    def may_add(self, model: type[Model]) -> bool:
        return self._may("add", model)

    @property
    def may_start(self) -> bool:
        """May the user run the benchmarks that the user sees?"""
        return self.sees(Benchmark) and bool(self.user.has_perm(permissions.START))

    @property
    def may_measure(self) -> bool:
        """May the user measure a query that is no workload yet?"""
        return self.sees(Benchmark) and permissions.has_all(self.user, permissions.MEASURE)

    def rows(self, model: type[M]) -> QuerySet[M]:
        """The rows that the user sees; none where the list of the model is hidden."""
        return self.narrow(model._default_manager.all())

    def narrow(self, rows: QuerySet[M]) -> QuerySet[M]:
        return permissions.visible(rows, self.user) if self.sees(rows.model) else rows.none()

    def _may(self, act: str, model: type[Model]) -> bool:
        return bool(self.models.get(model, {}).get(act))


def _is_shown(page: Any, request: Any) -> bool:
    return bool(page.has_module_permission(request))
