"""What definitions have that groups may hide."""

from typing import Any, ClassVar

from django.contrib.auth.models import Group
from django.db import models
from django.utils.translation import gettext_lazy as _

from pgperf.db import fields


def restricted_field() -> "models.BooleanField[bool, bool]":
    return models.BooleanField(
        _("restricted"),
        default=False,
        help_text=_(
            "Only members of the groups and superusers may see it; without groups, only superusers. "
            "Choosing groups ticks this box. Only a superuser may untick it."
        ),
    )


def groups_field(help_text: Any) -> fields.GroupsField:
    """db_constraint=False: groups may live in another database."""
    return fields.GroupsField(
        Group,
        verbose_name=_("groups"),
        blank=True,
        db_constraint=False,
        related_name="+",
        help_text=help_text,
    )


class Restrictable(models.Model):
    """A definition that groups may hide (see pgperf.db.restriction)."""

    #: The same words whether the user may see the row of that name or not.
    name = models.SlugField(
        _("name"),
        max_length=60,
        unique=True,
        error_messages={"unique": _("This name is not available. Choose another name.")},
    )

    #: Foreign keys to rows that it is hidden with.
    hidden_with: ClassVar[tuple[str, ...]] = ()

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return self.name
