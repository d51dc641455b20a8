"""Permissions: Django's own, narrowed by the groups of Databases, Workloads and Benchmarks.

A row that is not restricted is open to every user with the permission; a superuser sees all. A
Benchmark is hidden with its usual Database and its Workloads, and a Run with its Benchmark and its
Database. A restricted Run that lost one of these is for superusers, as is one whose Benchmark and
Database are not restricted any more. Pages and the worker both check here.
"""

from dataclasses import dataclass
from typing import Any, TypeVar

from django.contrib.auth import get_user_model
from django.db.models import Exists, Model, Q, QuerySet

from pgperf.db import restriction
from pgperf.models import Benchmark, Database, Run, Workload

M = TypeVar("M", bound=Model)

START, MANAGE_TARGETS = "pgperf.start_run", "pgperf.manage_targets"
#: The models with rows that groups may hide.
SCOPED = (Database, Workload, Benchmark, Run)


def visible(rows: QuerySet[M], user: Any) -> QuerySet[M]:
    """The rows that the groups let the user see; all rows of other models."""
    if user.is_superuser or rows.model not in SCOPED:
        return rows
    groups = getattr(user, "groups", None)
    # Group ids are fetched first: users may live in another database.
    own = list(groups.values_list("pk", flat=True)) if groups is not None else []
    return rows.filter(_Member(own, rows.db).sees(rows.model))


def may_see(user: Any, row: Model) -> bool:
    """Do the groups let the user see this row? Permissions are checked elsewhere."""
    return visible(type(row)._default_manager.using(row._state.db).filter(pk=row.pk), user).exists()


def refusal(run: Run) -> str:
    """Why the user who requested the run has lost the permission; "" for a user who has it, and for
    a command.
    """
    if run.requested_by_id is None and not run.by_user:
        return ""
    user = requester(run)
    if user is None or not user.is_active or not user.has_perm(START):
        return "the user who asked for this run may not start runs any more"
    for row in filter(None, (run.benchmark, run.database, run)):
        if not may_see(user, row):
            return f"the user who asked for this run may not see {row._meta.verbose_name} {row} any more"
    return ""


def requester(run: Run) -> Any:
    """The user who requested the run; None for a command, or if the user was deleted."""
    if run.requested_by_id is None:
        return None
    return get_user_model()._default_manager.filter(pk=run.requested_by_id).first()


@dataclass(frozen=True)
class _Member:
    """A user who is no superuser, by the ids of the groups; `using`: the database that is asked."""

    groups: list[int]
    using: str

    def sees(self, model: type[Model]) -> Q:
        """The condition on rows of the model."""
        condition = self._of_run() if model is Run else self._of_groups(model)
        for name in restriction.parents(model):
            condition &= self._sees_parents(model, name)
        return condition

    def _of_groups(self, model: type[Model]) -> Q:
        named = restriction.named(model)
        return Q(restricted=False) & ~Exists(named) | Q(Exists(named.filter(group_id__in=self.groups)))

    def _of_run(self) -> Q:
        """A restricted run is for those who see it with what restricts it."""
        whole = Q(benchmark__isnull=False, database__isnull=False)
        by_benchmark = Q(benchmark__in=restriction.restricted_rows(Benchmark, self.using))
        by_database = Q(database__in=restriction.restricted_rows(Database, self.using))
        return Q(restricted=False) | whole & (by_benchmark | by_database)

    def _sees_parents(self, model: type[Model], name: str) -> Q:
        """The user sees every row that the lookup leads to, if there is any."""
        parent: Any = restriction.parent_model(model, name)
        rows = parent._default_manager.using(self.using)
        seen = rows.filter(self.sees(parent))
        if restriction.is_direct(name):
            return Q(**{name: None}) | Q(**{f"{name}__in": seen})
        return ~Q(**{f"{name}__in": rows.exclude(pk__in=seen.values("pk"))})
