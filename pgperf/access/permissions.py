"""Permissions: Django's own, narrowed by the groups of Databases, Workloads and Benchmarks.

A row that is not restricted is open to every user with the permission; a superuser sees all. A
Benchmark is hidden with its usual Database and its Workloads, and a Run or a Schedule with its
Benchmark and its Database. A restricted Run that lost one of these is for superusers, as is one
whose Benchmark and Database are not restricted any more. Pages and the worker both check here.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar

from django.contrib.auth import get_user_model
from django.db.models import Exists, Model, Q, QuerySet

from pgperf.db import restriction
from pgperf.models import Benchmark, Database, Run, Schedule, StatementList, Workload

M = TypeVar("M", bound=Model)

START, MANAGE_TARGETS = "pgperf.start_run", "pgperf.manage_targets"
ADD_DATABASE = "pgperf.add_database"
#: For a workload, its benchmark and its run at once.
MEASURE = ("pgperf.add_workload", "pgperf.add_benchmark", START)
#: To ask a database's server for its statements.
READ_STATEMENTS = (*MEASURE, MANAGE_TARGETS)
#: The models with rows that groups may hide.
SCOPED = (Database, Workload, Benchmark, Schedule, Run)


def is_superuser(user: Any) -> bool:
    """A site's own user model may have no superusers."""
    return bool(getattr(user, "is_superuser", False))


def has_all(user: Any, needed: Iterable[str]) -> bool:
    """Django's admin needs `has_perm` of a user model only."""
    return all(user.has_perm(permission) for permission in needed)


def may_view(user: Any, model: type[Model]) -> bool:
    """As Django's admin decides: who may change rows may view them."""
    return any(user.has_perm(f"pgperf.{verb}_{model._meta.model_name}") for verb in ("view", "change"))


def visible(rows: QuerySet[M], user: Any) -> QuerySet[M]:
    """The rows that the groups let the user see; all rows of other models."""
    if is_superuser(user) or rows.model not in SCOPED:
        return rows
    groups = getattr(user, "groups", None)
    # Group ids are fetched first: users may live in another database.
    own = sorted(groups.values_list("pk", flat=True)) if groups is not None else []
    return rows.filter(_condition(tuple(own), rows.db, rows.model))


def may_see(user: Any, row: Model) -> bool:
    """Do the groups let the user see this row? Permissions are checked elsewhere."""
    return visible(type(row)._default_manager.using(row._state.db).filter(pk=row.pk), user).exists()


def refusal(run: Run) -> str:
    """Why the user who requested the run has lost the permission; "" for a user who has it, and for
    a command.
    """
    if run.requested_by_id is None and not run.by_user:
        return ""
    rows = (run.benchmark, run.database, run)
    return _lost_permission(requester(run), "the user who asked for this run", rows)


def owner_refusal(schedule: Schedule) -> str:
    """Why the owner may not start what the schedule names; "" for an owner who may."""
    user = owner(schedule)
    if user is None:
        return "its owner was deleted"
    if not may_view(user, Benchmark):
        return "its owner may not start runs or view benchmarks any more"
    return _lost_permission(user, "its owner", (schedule.benchmark, schedule.database))


def statements_refusal(asked: StatementList) -> str:
    """Why the user who asked for a server's statements has lost the permission; "" for one who has
    it.
    """
    user, who = _user(asked.asked_by_id), "the user who asked for these statements"
    if not _has(user, READ_STATEMENTS):
        return f"{who} may not ask a server for its statements any more"
    return _hidden(user, who, (asked.database,))


def _lost_permission(user: Any, who: str, rows: Iterable[Model | None]) -> str:
    if not _has(user, (START,)):
        return f"{who} may not start runs any more"
    return _hidden(user, who, rows)


def _has(user: Any, needed: Iterable[str]) -> bool:
    return user is not None and user.is_active and has_all(user, needed)


def _hidden(user: Any, who: str, rows: Iterable[Model | None]) -> str:
    for row in rows:
        if row is not None and not may_see(user, row):
            return f"{who} may not see {row._meta.verbose_name} {row} any more"
    return ""


def requester(run: Run) -> Any:
    """The user who requested the run; None for a command, or if the user was deleted."""
    return _user(run.requested_by_id)


def owner(schedule: Schedule) -> Any:
    """The user as whom the schedule starts runs; None if the user was deleted."""
    return _user(schedule.owner_id)


def _user(pk: int | None) -> Any:
    return None if pk is None else get_user_model()._default_manager.filter(pk=pk).first()


@lru_cache(maxsize=128)
def _condition(groups: tuple[int, ...], using: str, model: type[Model]) -> Q:
    """What `_Member.sees`; kept, because making it takes longest. It holds no answers: its queries are
    part of each query that it is used in.
    """
    return _Member(groups, using).sees(model)


@dataclass(frozen=True)
class _Member:
    """A user who is no superuser, by the ids of the groups; `using`: the database that is asked."""

    groups: tuple[int, ...]
    using: str

    def sees(self, model: type[Model]) -> Q:
        """The condition on rows of the model."""
        condition = Q()
        if restriction.has_flag(model):
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
