"""What a query without code reads: its models, their columns, and the keys in JSON columns.

Every relation that a name passes counts, also where Django needs no join for it. So do the models
that a model inherits from, the orderings in `Meta`, and annotations of the default manager.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.apps import apps
from django.core.exceptions import FieldDoesNotExist
from django.db.models import F, Field, Model
from django.db.models.expressions import Col
from django.db.models.sql import Query

#: These fetch objects, with every column of the model.
_OF_OBJECTS = ("get", "list", "first")


@dataclass(frozen=True)
class Read:
    """One model, column or key that a query reads, and where the query says so.

    `column` is a field of `model`; `key` is a transform or a key in a JSON column. `returned`: the
    column is one of all that objects have.
    """

    part: str  # a field of the workload's form
    path: str
    model: type[Model]
    column: Any = None
    key: str = ""
    returned: bool = False


def reads(query: Mapping[str, Any]) -> list[Read]:
    """What the query reads. The query fits its model (`queries.check`)."""
    model = apps.get_model(query["model"])
    found = list(_Reader("model", model._meta.label).model(model))
    for part in ("lookup", "values"):
        for path in query.get(part) or ():
            found += _Reader(part, path).path(model, path)
    for item in query.get("ordering") or model._meta.ordering:
        found += _Reader("ordering", str(item)).ordering(model, item)
    for part in ("select_related", "prefetch_related"):
        for path in query.get(part) or ():
            found += _Reader(part, path).objects_along(model, path)
    if query["fetch"] in _OF_OBJECTS or (query["fetch"] == "values_list" and not query.get("values")):
        fetched = _Reader("fetch", query["fetch"])
        found += [*fetched.columns(model), *fetched.annotations(model)]
    return found


@dataclass(frozen=True)
class _Reader:
    """Collects what one name of a part reads."""

    part: str
    name: str

    def model(self, model: type[Model]) -> Iterator[Read]:
        """The model, and the models whose tables it inherits."""
        for each in (model, *(parent for parent in model._meta.get_parent_list())):
            yield Read(self.part, self.name, each)

    def path(self, model: type[Model], path: str) -> Iterator[Read]:
        """The models and columns that a name such as author__name passes."""
        names = path.split("__")
        query = model._default_manager.get_queryset().query
        for end in range(len(names), 0, -1):
            if "__".join(names[:end]) in query.annotations:
                yield from self.query(query)
                yield from self.keys(model, names[end:])
                return
        filtered = getattr(query, "_filtered_relations", {}).get(names[0])
        if filtered:
            names = [*filtered.relation_name.split("__"), *names[1:]]
            yield from self.query(query)
        yield from self.fields(model, names)

    def fields(self, model: type[Model], names: list[str]) -> Iterator[Read]:
        here = model
        for position, name in enumerate(names):
            field = _field(here, name)
            if field is None:
                yield from self.keys(here, names[position:])
                return
            if isinstance(field, Field) and field.model._meta.concrete_model is not here._meta.concrete_model:
                yield from self.model(field.model)
            yield Read(self.part, self.name, here, column=field)
            if not field.is_relation:
                yield from self.keys(here, names[position + 1 :])
                return
            yield from self.related(field)
            if field.related_model is None:  # a generic foreign key
                return
            here = field.related_model

    def keys(self, model: type[Model], names: Iterable[str]) -> Iterator[Read]:
        for name in names:
            yield Read(self.part, self.name, model, key=name)

    def related(self, relation: Any) -> Iterator[Read]:
        """The models of a relation: the other side, and the table between the two."""
        for model in filter(None, (relation.related_model, _through(relation))):
            yield from self.model(model)

    def ordering(self, model: type[Model], item: Any) -> Iterator[Read]:
        """The models and columns of an item of order_by(): a name or an expression."""
        yield from self._ordering(model, item, ())

    def _ordering(self, model: type[Model], item: Any, seen: tuple[Any, ...]) -> Iterator[Read]:
        if not isinstance(item, str):
            yield from self.expression(item, model)
            return
        path = item.removeprefix("-")
        if path == "?":
            return
        found = list(self.path(model, path))
        yield from found
        # The name of a relation orders by the ordering of its model.
        last = next((each.column for each in reversed(found) if each.column is not None), None)
        related = last and last.related_model
        if related and last not in seen and not any(each.key for each in found):
            for inner in related._meta.ordering:
                yield from self._ordering(related, inner, (*seen, last))

    def objects_along(self, model: type[Model], path: str) -> Iterator[Read]:
        """The objects of each relation along the path, with their columns and orderings."""
        here = model
        for name in path.split("__"):
            relation = _relation(here, name)
            yield Read(self.part, self.name, here, column=relation)
            if relation.related_model is None:  # a generic foreign key leads anywhere
                return
            yield from self.related(relation)
            here = relation.related_model
            yield from self.columns(here)
            if self.part == "prefetch_related":  # by a query of its own
                yield from self.annotations(here)
                for item in here._meta.ordering:
                    yield from self.ordering(here, item)

    def columns(self, model: type[Model]) -> Iterator[Read]:
        """Every column that an object of the model has."""
        for column in model._meta.concrete_fields:
            yield Read(self.part, self.name, model, column=column, returned=True)

    def annotations(self, model: type[Model]) -> Iterator[Read]:
        """What the annotations of the default manager read."""
        query = model._default_manager.get_queryset().query
        if query.annotations:
            yield from self.query(query)

    def expression(self, expression: Any, model: type[Model]) -> Iterator[Read]:
        """The columns of an expression: of an annotation (resolved) or of an ordering (not)."""
        if isinstance(expression, Query):
            yield from self.query(expression)
        elif isinstance(expression, F):
            yield from self.path(model, str(expression.name))  # type: ignore[attr-defined]
        elif isinstance(expression, Col):
            yield from self.model(expression.target.model)
            yield Read(self.part, self.name, expression.target.model, column=expression.target)
        elif expression is not None:
            for each in _sources(expression):
                yield from self.expression(each, model)

    def query(self, query: Any) -> Iterator[Read]:
        """The models that a query of the site's code joins, and the columns of its conditions."""
        tables = {each.table_name for each in query.alias_map.values()}
        yield from self.model(query.model)
        for model in apps.get_models(include_auto_created=True):
            if model._meta.db_table in tables and not model._meta.proxy:
                yield from self.model(model)
        for each in (query.where, *query.annotations.values()):
            yield from self.expression(each, query.model)


def _sources(expression: Any) -> list[Any]:
    children = getattr(expression, "children", None)  # of a condition
    own = expression.get_source_expressions() if hasattr(expression, "get_source_expressions") else []
    return [*(children or ()), *own]


def _field(model: type[Model], name: str) -> Any:
    """The field or relation of that name as in filter(); None if there is none."""
    if name == "pk":
        return model._meta.pk
    try:
        return model._meta.get_field(name)
    except FieldDoesNotExist:
        return None


def _relation(model: type[Model], name: str) -> Any:
    """The relation of that name as in prefetch_related(), which takes names of attributes."""
    for field in model._meta.get_fields():
        if field.is_relation:
            accessor = field.get_accessor_name() if hasattr(field, "get_accessor_name") else field.name
            if name in (accessor, field.name):
                return field
    raise LookupError(name)


def _through(relation: Any) -> type[Model] | None:
    """The model between the two sides of a many-to-many relation."""
    owner = relation if hasattr(relation, "through") else getattr(relation, "remote_field", None)
    return getattr(owner, "through", None)
