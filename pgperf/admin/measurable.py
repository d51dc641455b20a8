"""What there is to measure on this site: registered callables, pages, and models."""

import inspect
from dataclasses import dataclass
from typing import Any

from django.apps import apps

from pgperf import registry
from pgperf.workloads import discovery, queries, query_access, secret_models


@dataclass(frozen=True)
class Callable:
    """A registered callable; `signature`: its arguments in parentheses."""

    name: str
    title: str
    signature: str


@dataclass(frozen=True)
class Measurable:
    """`failures`: modules that could not be imported, each with the reason."""

    callables: list[Callable]
    failures: list[str]
    models: list[str]


def measurable(user: Any) -> Measurable:
    """The models are those that the user may view and that hold no secrets as a whole."""
    callables = [Callable(name, registry.title(name), _signature(name)) for name in discovery.names()]
    failures = [str(failure) for failure in discovery.discover()]
    models = [label for label in queries.models() if _may_query(label, user)]
    return Measurable(callables, failures, models)


def _may_query(label: str, user: Any) -> bool:
    model = apps.get_model(label)
    return query_access.may_view(user, model) and not secret_models.is_secret_model(model)


def _signature(name: str) -> str:
    found = registry.find(name)
    function = found.function or found.asynchronous
    assert function is not None
    names = inspect.signature(function).parameters.values()
    return f"({', '.join(str(each).partition('=')[0].partition(':')[0] for each in names)})"
