"""Queries without code: builds a callable from a model, a lookup and a fetch method. No text is
evaluated.

A query is a JSON object: `model` ("app.Model"), `fetch` (see FETCHES), `lookup` (arguments of
`filter()`; values are text, numbers, booleans, null, or lists of them), the lists `select_related`,
`prefetch_related`, `ordering` and `values` (fields of a values list), and `limit` (0: none).
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any

from django.apps import apps
from django.core.exceptions import FieldDoesNotExist, FieldError, ValidationError
from django.db import router
from django.db.models import Model, QuerySet
from django.utils.translation import gettext as _

from pgperf.core.json_scalar import is_json_scalar
from pgperf.workloads import query_access

FETCHES = ("get", "list", "first", "count", "exists", "values_list")
MAX_LIMIT = 100_000
_NAMES = ("lookup", "select_related", "prefetch_related", "ordering", "values")
_MOST_NAMES, _MOST_CHARACTERS, _MOST_RELATIONS = 100, 300, 10

_OF_OBJECTS = ("get", "list", "first")
_LIMITED = ("list", "values_list", "count")


def check(query: Mapping[str, Any]) -> None:
    """Raises ValidationError with a message for each part that does not fit the model, or that reads
    a secret.

    Runs no query. `query_access.check_user` asks for the permissions of a user.
    """
    model = _checked_model(query)
    if unfit := {part: [problem] for part in _NAMES if (problem := _size_problem(query.get(part)))}:
        raise ValidationError(unfit)
    found: dict[str, list[str]] = {}
    for part, problems in _CHECKS.items():
        if messages := list(problems(query, model)):
            found[part] = messages
    if found:
        raise ValidationError(found)
    query_access.check_secrets(query)


def _size_problem(names: Any) -> str:
    """Why there are too many or too long names to look up each of them; "" if there are not."""
    if not isinstance(names, dict | list) or (
        all(_is_short(name) for name in names) and len(names) <= _MOST_NAMES
    ):
        return ""
    return _("At most %(count)d names, each with at most %(characters)d characters and %(relations)d relations.") % {
        "count": _MOST_NAMES, "characters": _MOST_CHARACTERS, "relations": _MOST_RELATIONS,
    }  # fmt: skip


def _is_short(name: Any) -> bool:
    return not isinstance(name, str) or (
        len(name) <= _MOST_CHARACTERS and name.count("__") <= _MOST_RELATIONS
    )


def build(query: Mapping[str, Any]) -> Callable[[], Any]:
    """The callable of one operation: it builds the query set and fetches it.

    Raises ValidationError like `check`.
    """
    return _built(query, _FETCH)


def build_async(query: Mapping[str, Any]) -> Callable[[], Awaitable[Any]]:
    """Like `build`, for an event loop: with the asynchronous methods of query sets."""
    return _built(query, _FETCH_ASYNC)


def _built(query: Mapping[str, Any], fetches: Mapping[str, Callable[..., Any]]) -> Callable[[], Any]:
    check(query)
    model, fetch = _model(query), fetches[query["fetch"]]
    parts = dict(query)
    return lambda: fetch(_query_set(model, parts), parts)


def alias(query: Mapping[str, Any]) -> str:
    """The alias of DATABASES that the site's routers select for the query."""
    return str(router.db_for_read(_model(query)))


def models() -> list[str]:
    """The labels of all installed models, such as "app.Model", sorted."""
    return sorted(model._meta.label for model in apps.get_models())


def _model(query: Mapping[str, Any]) -> type[Model]:
    return apps.get_model(query["model"])


def _checked_model(query: Mapping[str, Any]) -> type[Model]:
    try:
        return _model(query)
    except (LookupError, ValueError, KeyError):
        raise ValidationError(
            {"model": _('There is no model "%s" in the installed apps.') % query.get("model", "")}
        ) from None


def _query_set(model: type[Model], query: Mapping[str, Any]) -> QuerySet[Any]:
    """The query set, built from the default manager as in a view."""
    found = model._default_manager.filter(**query.get("lookup") or {})
    if query.get("select_related"):
        found = found.select_related(*query["select_related"])
    if query.get("prefetch_related"):
        found = found.prefetch_related(*query["prefetch_related"])
    if query.get("ordering"):
        found = found.order_by(*query["ordering"])
    return found


def _limited(found: QuerySet[Any], query: Mapping[str, Any]) -> QuerySet[Any]:
    return found[: query["limit"]] if query.get("limit") else found


_FETCH: dict[str, Callable[[QuerySet[Any], Mapping[str, Any]], Any]] = {
    "get": lambda found, query: found.get(),
    "list": lambda found, query: list(_limited(found, query)),
    "first": lambda found, query: found.first(),
    "count": lambda found, query: _limited(found, query).count(),
    "exists": lambda found, query: found.exists(),
    "values_list": lambda found, query: list(_limited(found.values_list(*query.get("values") or ()), query)),
}


async def _listed(found: QuerySet[Any]) -> list[Any]:
    return [each async for each in found]


_FETCH_ASYNC: dict[str, Callable[[QuerySet[Any], Mapping[str, Any]], Awaitable[Any]]] = {
    "get": lambda found, query: found.aget(),
    "list": lambda found, query: _listed(_limited(found, query)),
    "first": lambda found, query: found.afirst(),
    "count": lambda found, query: _limited(found, query).acount(),
    "exists": lambda found, query: found.aexists(),
    "values_list": lambda found, query: _listed(
        _limited(found.values_list(*query.get("values") or ()), query)
    ),
}


def _lookup_problems(query: Mapping[str, Any], model: type[Model]) -> Iterator[str]:
    lookup = query.get("lookup") or {}
    if not isinstance(lookup, dict):
        yield _('Give a JSON object of lookups, for example {"isbn": "9790000000001"}.')
        return
    if not lookup and query.get("fetch") == "get":
        yield _("Say which one to get: a lookup that one row matches.")
    for name, value in lookup.items():
        if problem := _lookup_problem(model, name, value):
            yield problem


def _lookup_problem(model: type[Model], name: str, value: Any) -> str:
    """Why the lookup is refused; "" if it is not.

    `filter()` checks path, lookup and value without a query.
    """
    if name.startswith("_"):  # private parameters of filter() begin with an underscore
        return _('"%s" is not a field: names of lookups do not begin with an underscore.') % name
    if not all(is_json_scalar(item) for item in (value if isinstance(value, list) else [value])):
        return _("%s: give text, a number, true, false, null, or a list of these.") % name
    try:
        model._default_manager.filter(**{name: value})
    except ValidationError as error:
        return f"{name}: {' '.join(error.messages)}"
    except (FieldError, TypeError, ValueError, AttributeError, OverflowError) as error:
        return f"{name}: {error}"
    return ""


def _fetch_problems(query: Mapping[str, Any], _unused: type[Model]) -> Iterator[str]:
    if query.get("fetch") not in FETCHES:
        yield _("Choose one of: %s.") % ", ".join(FETCHES)


def _select_problems(query: Mapping[str, Any], model: type[Model]) -> Iterator[str]:
    yield from _path_problems(query, model, "select_related", _single_relations)


def _prefetch_problems(query: Mapping[str, Any], model: type[Model]) -> Iterator[str]:
    yield from _path_problems(query, model, "prefetch_related", _relations)


def _path_problems(
    query: Mapping[str, Any],
    model: type[Model],
    part: str,
    relations: Callable[[type[Model]], dict[str, type[Model] | None]],
) -> Iterator[str]:
    paths = query.get(part) or []
    if not _strings(paths):
        yield _("Give a JSON list of names.")
    elif paths and query.get("fetch") not in _OF_OBJECTS:
        yield _("Only with get, list and first: the other ways to fetch read no related objects.")
    else:
        yield from filter(None, (_path_problem(model, path, relations) for path in paths))


def _path_problem(
    model: type[Model], path: str, relations: Callable[[type[Model]], dict[str, type[Model] | None]]
) -> str:
    """Why the relations along the path cannot be followed; "" if they can.

    The check ends at a generic relation.
    """
    here: type[Model] | None = model
    for name in path.split("__"):
        if here is None:
            return ""
        there = relations(here)
        if name not in there:
            known = ", ".join(sorted(there)) or _("none")
            return _("%(path)s: %(model)s has no relation %(name)s here; it has: %(known)s.") % {
                "path": path, "model": here._meta.label, "name": name, "known": known,
            }  # fmt: skip
        here = there[name]
    return ""


def _single_relations(model: type[Model]) -> dict[str, type[Model] | None]:
    """The relations that select_related can follow: those to one object, forward and reverse."""
    fields = model._meta.get_fields()
    return {
        field.name: field.related_model
        for field in fields
        if field.is_relation and (field.many_to_one or field.one_to_one) and field.related_model
    }


def _relations(model: type[Model]) -> dict[str, type[Model] | None]:
    """The relations that prefetch_related can follow, by attribute name."""
    found: dict[str, type[Model] | None] = {}
    for field in model._meta.get_fields(include_hidden=False):
        if field.is_relation:
            name = field.get_accessor_name() if hasattr(field, "get_accessor_name") else field.name
            found[str(name)] = field.related_model
    return found


def _ordering_problems(query: Mapping[str, Any], model: type[Model]) -> Iterator[str]:
    names = query.get("ordering") or []
    if not _strings(names):
        yield _("Give a JSON list of names.")
        return
    for name in names:
        try:
            model._default_manager.order_by(name)
        except (FieldError, TypeError, ValueError) as error:
            yield f"{name}: {error}"


def _values_problems(query: Mapping[str, Any], model: type[Model]) -> Iterator[str]:
    names = query.get("values") or []
    if not _strings(names):
        yield _("Give a JSON list of names.")
    elif names and query.get("fetch") != "values_list":
        yield _("Only with the fetch method values_list.")
    else:
        yield from filter(None, (_value_problem(model, name) for name in names))


def _value_problem(model: type[Model], name: str) -> str:
    try:
        model._default_manager.values_list(name)
    except (FieldError, FieldDoesNotExist, TypeError, ValueError) as error:
        return f"{name}: {error}"
    return ""


def _limit_problems(query: Mapping[str, Any], _unused: type[Model]) -> Iterator[str]:
    limit = query.get("limit") or 0
    if type(limit) is not int or not 0 <= limit <= MAX_LIMIT:
        yield _("Give a whole number from 0 (no limit) to %d.") % MAX_LIMIT
    elif limit and query.get("fetch") not in _LIMITED:
        yield _("Only with list, values_list and count.")


def _strings(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) and item for item in value)


_CHECKS: dict[str, Callable[[Mapping[str, Any], type[Model]], Iterator[str]]] = {
    "fetch": _fetch_problems,
    "lookup": _lookup_problems,
    "select_related": _select_problems,
    "prefetch_related": _prefetch_problems,
    "ordering": _ordering_problems,
    "values": _values_problems,
    "limit": _limit_problems,
}
