"""Links from pgperf's rows to users and groups, which a site's router may keep in another database.

No query joins the two: ids are read on one side and looked up on the other. Django's own deletions
would look for rows of ours beside the user. Where ours are elsewhere, handlers of `pre_delete` look
for them: `forget_user` and `restriction.group_is_deleted`. An `on_delete` must not write, because
the admin calls it to show what a deletion would do.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from django.contrib.auth.models import Group
from django.db import models, router, transaction
from django.db.models.deletion import CASCADE, SET_NULL, Collector

from pgperf.core.client_environment import DEFAULT


def set_null(collector: Collector, field: models.Field, rows: models.QuerySet, using: str) -> None:
    """on_delete: SET_NULL, where the rows are beside the user."""
    if is_beside(field.model, using):
        SET_NULL(collector, field, rows, using)


def cascade(collector: Collector, field: models.Field, rows: models.QuerySet, using: str) -> None:
    """on_delete: CASCADE, where the rows are beside the group."""
    if is_beside(field.model, using):
        CASCADE(collector, field, rows, using)


# Django is not to look into the rows before it calls these: they may not be where it looks.
set_null.lazy_sub_objs = True  # type: ignore[attr-defined]
cascade.lazy_sub_objs = True  # type: ignore[attr-defined]


def persistent() -> list[str]:
    """The default connection modes of a benchmark."""
    return ["persistent"]


def default_environment() -> list[str]:
    """The default environments of a benchmark."""
    return [DEFAULT]


def closed_loop() -> list[None]:
    """The default rates of a benchmark: none, so that clients do as much as they can."""
    return [None]


def own_worker() -> list[int]:
    """The default load hosts of a benchmark: none, so that the run's own worker makes the load."""
    return [0]


def is_beside(model: type[models.Model], using: str) -> bool:
    """Are the model's rows in that database?"""
    return router.db_for_write(model) == using


class UserField(models.ForeignKey):
    """A user; null once the user is deleted.

    To migrations it is Django's own field with SET_NULL.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{**kwargs, "on_delete": set_null})

    def deconstruct(self) -> Any:
        name, _path, args, kwargs = super().deconstruct()
        return name, "django.db.models.ForeignKey", args, {**kwargs, "on_delete": SET_NULL}

    def forget_user(self, sender: type[models.Model], instance: models.Model, using: str, **_: Any) -> None:
        """pre_delete handler: null in rows that are in another database than the user."""
        if not is_beside(self.model, using):
            home = router.db_for_write(self.model)
            self.model._base_manager.using(home).filter(**{self.attname: instance.pk}).update(
                **{self.name: None}
            )


class GroupsField(models.ManyToManyField):
    """Groups of users, of a model with the field `restricted`.

    Forms read and write it by ids; so must everybody: `group_ids`, `set_groups`. To migrations it is
    Django's own field.
    """

    def deconstruct(self) -> Any:
        name, _path, args, kwargs = super().deconstruct()
        return name, "django.db.models.ManyToManyField", args, kwargs

    def contribute_to_class(
        self, cls: type[models.Model], name: str, private_only: bool = False, **kwargs: Any
    ) -> None:
        super().contribute_to_class(cls, name, private_only=private_only, **kwargs)
        through: Any = self.remote_field.through
        through._meta.get_field("group").remote_field.on_delete = cascade

    def value_from_object(self, obj: models.Model) -> list[Group]:
        return list(Group._default_manager.filter(pk__in=group_ids(obj))) if obj.pk else []

    def save_form_data(self, instance: models.Model, data: Iterable[Group]) -> None:
        """As `set_groups`, but a form without groups may have unticked `restricted` too."""
        _write(instance, {group.pk for group in data})


def group_ids(row: models.Model) -> list[int]:
    """The ids of the row's groups."""
    return list(links(row).order_by("group_id").values_list("group_id", flat=True))


def group_ids_of(rows: Sequence[models.Model]) -> dict[Any, set[int]]:
    """The ids of the groups of each of these rows of one model and database, by primary key: one
    query.
    """
    found: dict[Any, set[int]] = {row.pk: set() for row in rows}
    if rows:
        through: Any = rows[0]._meta.get_field("groups").remote_field.through  # type: ignore[union-attr]
        own = f"{rows[0]._meta.model_name}_id"
        named = through._default_manager.using(_home(rows[0])).filter(**{f"{own}__in": list(found)})
        for pk, group in named.values_list(own, "group_id"):
            found[pk].add(group)
    return found


def set_groups(row: models.Model, ids: Iterable[int]) -> None:
    """Let the row have these groups and no others. It is restricted then, if it has or had groups."""
    if group_ids(row):
        restrict(row)
    _write(row, set(ids))


def restrict(row: models.Model) -> None:
    """Set `restricted`, in the database and in memory."""
    row.restricted = True  # type: ignore[attr-defined]
    stored(row).update(restricted=True)


def stored(row: models.Model) -> models.QuerySet:
    """The row as a query: what is in memory may be old."""
    return type(row)._base_manager.using(_home(row)).filter(pk=row.pk)


def links(row: models.Model) -> models.QuerySet:
    """The rows between this one and its groups."""
    through: Any = row._meta.get_field("groups").remote_field.through  # type: ignore[union-attr]
    found: models.QuerySet = through._default_manager.using(_home(row)).filter(
        **{f"{row._meta.model_name}_id": row.pk}
    )
    return found


def _write(row: models.Model, wanted: set[int]) -> None:
    there, named = set(group_ids(row)), links(row)
    own = f"{row._meta.model_name}_id"
    with transaction.atomic(using=named.db):
        if wanted:
            restrict(row)
        named.filter(group_id__in=there - wanted).delete()
        named.bulk_create(named.model(**{own: row.pk, "group_id": pk}) for pk in sorted(wanted - there))


def _home(row: models.Model) -> str:
    return row._state.db or router.db_for_write(type(row))
