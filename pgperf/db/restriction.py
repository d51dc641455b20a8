"""Restricted rows: those that only members of their groups, and superusers, may see.

`restricted` is a flag of its own, so that no deletion opens a row. Giving groups sets it; only a
superuser's untick clears it. Without groups, a restricted row is for superusers. A row is hidden
together with the rows that its model names in `hidden_with`. Who may see a row:
`access.permissions`.
"""

from collections.abc import Iterable
from typing import Any

from django.apps import apps
from django.db import router
from django.db.models import Exists, Model, OuterRef, Q, QuerySet
from django.utils.translation import gettext_lazy as _

from pgperf.db.fields import GroupsField, group_ids, is_beside, links, restrict, set_groups, stored

UNTICKED_WITH_GROUPS = _("Remove the groups too: with groups it is restricted.")


def parents(model: type[Model]) -> tuple[str, ...]:
    """Lookups of the rows that a row of the model is hidden with: foreign keys, or paths to several
    rows.
    """
    return getattr(model, "hidden_with", ())


def is_marked(row: Model) -> bool:
    """Is the row restricted by its own flag or groups, as the database has them now?"""
    if not has_flag(type(row)):
        return False
    return stored(row).filter(restricted=True).exists() or (has_groups(type(row)) and links(row).exists())


def marked(*rows: Model | None) -> list[Model]:
    """What restricts these rows, as the database has them now: each of them, and of those that they
    are hidden with, that is marked.
    """
    found = []
    for row in (stored(each).first() for each in rows if each is not None):
        if row is not None:
            found += [row] if is_marked(row) else []
            found += marked(*(each for name in parents(type(row)) for each in _parents_of(row, name)))
    return found


def restricted_rows(model: type[Model], using: str) -> QuerySet[Any]:
    """The rows of a definition's model that are marked, or hidden with a row that is."""
    wanted = Q(restricted=True) | Q(Exists(named(model)))
    for name in parents(model):
        wanted |= Q(**{f"{name}__in": restricted_rows(parent_model(model, name), using)})
    return model._base_manager.using(using).filter(wanted)


def named(model: type[Model]) -> QuerySet[Any]:
    """For Exists(): the links of the outer row to its groups."""
    through = model._meta.get_field("groups").remote_field.through  # type: ignore[union-attr]
    found: QuerySet[Any] = through._default_manager.filter(**{f"{model._meta.model_name}_id": OuterRef("pk")})
    return found


def has_groups(model: type[Model]) -> bool:
    return any(isinstance(field, GroupsField) for field in model._meta.many_to_many)


def has_flag(model: type[Model]) -> bool:
    """Can a row be restricted itself, not only hidden with others?"""
    return any(field.name == "restricted" for field in model._meta.concrete_fields)


def restrict_to(row: Model, groups: Iterable[int]) -> None:
    """Restrict the row to these groups; none: to superusers."""
    set_groups(row, groups)
    restrict(row)


def shared_groups(rows: Iterable[Model]) -> set[int]:
    """The ids of the groups that all of these marked rows have."""
    found = [set(group_ids(row)) for row in rows]
    return set.intersection(*found) if found else set()


# Signals


def groups_change(sender: Any, instance: Model, action: str, pk_set: set[int] | None, **_kwargs: Any) -> None:
    """m2m_changed handler: groups that are given or taken away leave the row restricted."""
    taken = action in ("pre_remove", "pre_clear") and links(instance).exists()
    if taken or (action == "pre_add" and pk_set):
        restrict(instance)


def group_is_deleted(sender: type[Model], instance: Model, using: str, **_kwargs: Any) -> None:
    """pre_delete handler: the rows of the group stay restricted.

    Links in another database than the group's are deleted here: no cascade reaches them.
    """
    for model in filter(has_groups, apps.get_models()):
        through: Any = model._meta.get_field("groups").remote_field.through  # type: ignore[union-attr]
        home = router.db_for_write(through)
        found = through._default_manager.using(home).filter(group_id=instance.pk)
        owners = found.values_list(f"{model._meta.model_name}_id", flat=True)
        model._base_manager.using(home).filter(pk__in=list(owners)).update(restricted=True)
        if not is_beside(through, using):
            found.delete()


def parent_is_deleted(sender: type[Model], instance: Model, using: str, **_kwargs: Any) -> None:
    """pre_delete handler: what was hidden with a restricted row stays restricted without it.

    A definition takes over its groups, or keeps those of its own that both have.
    """
    if not (marks := marked(instance)):
        return
    for child in _children(sender):
        rows = child.model._base_manager.using(using).filter(**{child.name: instance})
        if not has_groups(child.model):
            rows.update(restricted=True)
            continue
        for row in rows:
            restrict_to(row, shared_groups([*marks, *([row] if is_marked(row) else [])]))


def parents_change(sender: type[Model], instance: Model, raw: bool, **_kwargs: Any) -> None:
    """pre_save handler: a row that leaves a restricted one stays restricted."""
    before = None if raw or instance._state.adding else stored(instance).first()
    for name in filter(is_direct, parents(sender) if before else ()):
        left = getattr(before, name)
        if left is not None and left.pk != getattr(instance, f"{name}_id") and marked(left):
            restrict(instance)


def link_is_deleted(sender: type[Model], instance: Any, **_kwargs: Any) -> None:
    """pre_delete handler of BenchmarkWorkload: a benchmark that leaves a restricted workload stays
    restricted.
    """
    if marked(instance.workload):
        restrict(instance.benchmark)


def _children(model: type[Model]) -> list[Any]:
    """The foreign keys by which rows are hidden with rows of the model, and stay without them."""
    return [
        relation.field
        for relation in model._meta.related_objects
        if relation.field.name in parents(relation.field.model) and has_flag(relation.field.model)
    ]


def is_direct(name: str) -> bool:
    """Is it a foreign key of the row, not a path to several rows?"""
    return "__" not in name


def parent_model(model: type[Model], name: str) -> type[Model]:
    """The model of the rows that the lookup leads to."""
    for step in name.split("__"):
        model = model._meta.get_field(step).related_model  # type: ignore[assignment]
    return model


def _parents_of(row: Any, name: str) -> list[Model | None]:
    if is_direct(name):
        return [getattr(row, name)]
    links, last = name.split("__")
    return [getattr(link, last) for link in getattr(row, links).all()]
