"""Links from pgperf's rows to users and groups, which a site's router may keep in another database.

No query joins the two: ids are read on one side and looked up on the other. Django's own deletions
would look for rows of ours beside the user; these look where the rows are.
"""

from collections.abc import Iterable
from typing import Any

from django.contrib.auth.models import Group
from django.db import models, router, transaction
from django.db.models.deletion import CASCADE, SET_NULL, Collector


def set_null(collector: Collector, field: models.Field, rows: models.QuerySet, using: str) -> None:
    """on_delete: SET_NULL, wherever the rows are."""
    home = router.db_for_write(field.model)
    if home == using:
        SET_NULL(collector, field, rows, using)
    else:
        rows.using(home).update(**{field.name: None})


def cascade(collector: Collector, field: models.Field, rows: models.QuerySet, using: str) -> None:
    """on_delete: CASCADE, wherever the rows are."""
    home = router.db_for_write(field.model)
    if home == using:
        CASCADE(collector, field, rows, using)
    else:
        rows.using(home).delete()


# Django is not to look into the rows before it calls these: they may not be where it looks.
set_null.lazy_sub_objs = True  # type: ignore[attr-defined]
cascade.lazy_sub_objs = True  # type: ignore[attr-defined]


class UserField(models.ForeignKey):
    """A user; null once the user is deleted.

    To migrations it is Django's own field with SET_NULL.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{**kwargs, "on_delete": set_null})

    def deconstruct(self) -> Any:
        name, _path, args, kwargs = super().deconstruct()
        return name, "django.db.models.ForeignKey", args, {**kwargs, "on_delete": SET_NULL}


class GroupsField(models.ManyToManyField):
    """Groups of users. Forms read and write it by ids; so must everybody: `group_ids`,
    `set_groups`.

    To migrations it is Django's own field.
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
        set_groups(instance, [group.pk for group in data])


def group_ids(row: models.Model) -> list[int]:
    """The ids of the row's groups."""
    return list(_links(row).order_by("group_id").values_list("group_id", flat=True))


def set_groups(row: models.Model, ids: Iterable[int]) -> None:
    """Let the row have these groups and no others."""
    links = _links(row)
    wanted, there = set(ids), set(group_ids(row))
    own = f"{row._meta.model_name}_id"
    with transaction.atomic(using=links.db):
        links.filter(group_id__in=there - wanted).delete()
        links.bulk_create(links.model(**{own: row.pk, "group_id": pk}) for pk in sorted(wanted - there))


def _links(row: models.Model) -> models.QuerySet:
    through: Any = row._meta.get_field("groups").remote_field.through  # type: ignore[union-attr]
    using = row._state.db or router.db_for_write(type(row))
    found: models.QuerySet = through._default_manager.using(using).filter(
        **{f"{row._meta.model_name}_id": row.pk}
    )
    return found
