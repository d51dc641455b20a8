"""The ORM callables a benchmark may name (standard library only).

    @workload("shop.open_orders")
    def open_orders(customer_id):
        return Order.objects.filter(customer_id=customer_id, open=True)

The callable is called with the workload's arguments, once per operation, and returns what it read: a list or a
query set counts as its rows (a query set is evaluated if it was not), None as no row, anything else as one.
"""

import re
from collections.abc import Callable
from typing import Any, TypeVar

from pgperf.exceptions import InvalidDefinition

F = TypeVar("F", bound=Callable[..., Any])

_NAME = re.compile(r"[a-z_][a-z0-9_]*(\.[a-z_][a-z0-9_]*)+")
_workloads: dict[str, Callable[..., Any]] = {}


def workload(name: str) -> Callable[[F], F]:
    """Registers a callable as `name`, e.g. "shop.open_orders". Raises InvalidDefinition if the name is taken or odd."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InvalidDefinition(
            f"workload {name!r}: write it app.name, in lower case letters, digits and underscores"
        )

    def register(function: F) -> F:
        known = _workloads.setdefault(name, function)
        if _origin(known) != _origin(function):
            raise InvalidDefinition(
                f"workload {name!r}: already registered by {'.'.join(_origin(known))}; rename one"
            )
        _workloads[name] = function
        return function

    return register


def get(name: str) -> Callable[..., Any]:
    """The callable of that name. Raises InvalidDefinition naming those there are."""
    try:
        return _workloads[name]
    except KeyError:
        known = ", ".join(names()) or "none"
        raise InvalidDefinition(f"orm: no workload {name!r} is registered; registered are: {known}") from None


def names() -> list[str]:
    """The names registered so far, sorted."""
    return sorted(_workloads)


def _origin(function: Callable[..., Any]) -> tuple[str, str]:
    """Equal for a function and the same one of its module loaded again."""
    return function.__module__, function.__qualname__
