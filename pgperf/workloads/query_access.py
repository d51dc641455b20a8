"""Who may send a query without code: all that it reads must be open to the user.

`check_secrets` holds for everyone. `check_user` asks for Django's permission to view each model, as
the admin does: *view* or *change*.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from django.contrib.auth import get_permission_codename
from django.core.exceptions import ValidationError
from django.db.models import Model
from django.utils.translation import gettext as _

from pgperf.core.secret_names import is_secret_name
from pgperf.workloads import secret_models
from pgperf.workloads.reads import Read, reads


def check_secrets(query: Mapping[str, Any]) -> None:
    """Raises ValidationError, which names each part, if the query reads what no query may read."""
    _raise(query, _secret)


def check_user(query: Mapping[str, Any], user: Any) -> None:
    """Raises ValidationError unless the user may view every model that the query reads. It names each
    permission that the user lacks once, at the first part that needs it.
    """
    named: set[str] = set()

    def lacking(read: Read) -> str:
        for model in _viewed(read.model):
            permission = _permission("view", model)
            if permission not in named and not may_view(user, model):
                named.add(permission)
                place = {"path": read.path, "model": model._meta.label, "permission": permission}
                return _("%(path)s: needs the permission to view %(model)s (%(permission)s).") % place
        return ""

    _raise(query, lacking)


def _raise(query: Mapping[str, Any], problem: Callable[[Read], str]) -> None:
    found: dict[str, dict[str, None]] = {}
    for read in reads(query):
        if message := problem(read):
            found.setdefault(read.part, {})[message] = None
    if found:
        raise ValidationError({part: list(messages) for part, messages in found.items()})


def _secret(read: Read) -> str:
    """Why no query without code may read it; "" if one may."""
    label = read.model._meta.label
    place = {"path": read.path, "model": label, "name": read.key}
    if secret_models.is_secret_model(read.model):
        return _("%(path)s: no query without code may read %(model)s. Register a callable.") % place
    if read.key and is_secret_name(read.key):
        return _("%(path)s: %(name)s is the name of a secret. Register a callable.") % place
    if read.column is None:
        return ""
    place["name"] = read.column.name
    if _leads_anywhere(read.column):
        return _("%(path)s: %(model)s.%(name)s may lead to every model. Register a callable.") % place
    if not secret_models.is_secret_field(read.column):
        return ""
    if read.returned:
        return (
            _("%(path)s: objects of %(model)s have the secret %(name)s. Use values list with named fields,")
            + _(" count or exists, or register a callable.")
        ) % place
    return _("%(path)s: %(model)s.%(name)s is a secret. Register a callable.") % place


def _leads_anywhere(column: Any) -> bool:
    return bool(column.is_relation) and column.related_model is None


def may_view(user: Any, model: type[Model]) -> bool:
    return any(user.has_perm(_permission(verb, model)) for verb in ("view", "change"))


def _permission(verb: str, model: type[Model]) -> str:
    return f"{model._meta.app_label}.{get_permission_codename(verb, model._meta)}"


def _viewed(model: type[Model]) -> Iterable[type[Model]]:
    """The models whose permissions count: a table that Django makes for a many-to-many relation has
    none of its own.
    """
    return _sides(model) if model._meta.auto_created else (model,)


def _sides(through: type[Model]) -> Iterator[type[Model]]:
    return (field.related_model for field in through._meta.concrete_fields if field.related_model)
