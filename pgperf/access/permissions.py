"""Permissions: Django's own, narrowed by the groups of a Database and of a Benchmark.

A row without groups is open to every user with the permission; a superuser is in every group. A
Benchmark is hidden with its usual Database, and a Run with its Benchmark or its Database. Pages and
the worker both check here.
"""

from typing import Any, TypeVar

from django.contrib.auth import get_user_model
from django.db.models import Exists, Model, OuterRef, Q, QuerySet

from pgperf.db.fields import group_ids
from pgperf.models import Benchmark, Database, Run

M = TypeVar("M", bound=Model)

START, MANAGE_TARGETS = "pgperf.start_run", "pgperf.manage_targets"


def visible(rows: QuerySet[M], user: Any) -> QuerySet[M]:
    """The rows that the groups let the user see; all rows of other models."""
    if user.is_superuser:
        return rows
    if rows.model is Run:
        return rows.filter(
            _theirs("benchmark", Benchmark, rows, user), _theirs("database", Database, rows, user)
        )
    if rows.model is Benchmark:
        rows = rows.filter(Q(database=None) | Q(database__in=_all(Database, rows, user)))
    return _open_to(rows, user) if rows.model in (Benchmark, Database) else rows


def may_see(user: Any, row: Model) -> bool:
    """Do the groups let the user see this row? Permissions are checked elsewhere."""
    return visible(type(row)._default_manager.using(row._state.db).filter(pk=row.pk), user).exists()


def refusal(run: Run) -> str:
    """Why the user who requested the run has lost the permission; "" for a user who has it, and for
    a command.
    """
    if run.requested_by_id is None:
        return ""
    user = get_user_model()._default_manager.filter(pk=run.requested_by_id).first()
    if user is None or not user.is_active or not user.has_perm(START):
        return "the user who asked for this run may not start runs any more"
    for row in filter(None, (run.benchmark, run.database)):
        if not may_see(user, row):
            return (
                f"the user who asked for this run is in no group of {row._meta.verbose_name} {row} any more"
            )
    return ""


def restrict_runs(sender: type[Model], instance: Database | Benchmark, using: str, **_: Any) -> None:
    """pre_delete handler: runs of a row that had groups stay hidden after it is deleted."""
    name = "database" if isinstance(instance, Database) else "benchmark"
    if group_ids(instance):
        Run.objects.using(using).filter(**{name: instance}).update(restricted=True)


def _theirs(field: str, model: type[Database] | type[Benchmark], rows: QuerySet[Any], user: Any) -> Q:
    return Q(**{f"{field}__in": _all(model, rows, user)}) | Q(**{field: None}, restricted=False)


def _all(model: type[Database] | type[Benchmark], beside: QuerySet[Any], user: Any) -> QuerySet[Any]:
    """Every visible row of the model, in the database that `beside` asks."""
    return visible(model._default_manager.using(beside.db).all(), user)


def _open_to(rows: QuerySet[M], user: Any) -> QuerySet[M]:
    """Group ids are fetched first: users may live in another database."""
    groups = getattr(user, "groups", None)
    own = list(groups.values_list("pk", flat=True)) if groups is not None else []
    through = rows.model._meta.get_field("groups").remote_field.through  # type: ignore[union-attr]
    named = through._default_manager.filter(**{f"{rows.model._meta.model_name}_id": OuterRef("pk")})
    return rows.filter(~Exists(named) | Exists(named.filter(group_id__in=own)))
