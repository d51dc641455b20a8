"""The ORM callables a benchmark may name (standard library only).

    @workload("shop.open_orders")
    def open_orders(customer_id):
        return Order.objects.filter(customer_id=customer_id, open=True)

The callable is called with the workload's arguments, once per operation, and returns what it read: a list or a
query set counts as its rows (a query set is evaluated if it was not), None as no row, anything else as one.
"""

import re
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from pgperf.core.exceptions import InvalidDefinition

F = TypeVar("F", bound=Callable[..., Any])

#: The prefix of the callables that pgperf ships, which run with minimal settings.
OWN_PREFIX = "pgperf."

_NAME = re.compile(r"[a-z_][a-z0-9_]*(\.[a-z_][a-z0-9_]*)+")


class RegisteredWorkload(NamedTuple):
    """A callable and the alias of DATABASES that its queries go to."""

    function: Callable[..., Any]
    using: str = "default"


#: Name -> registered workload.
WORKLOADS: dict[str, RegisteredWorkload] = {}


def workload(name: str, using: str = "default") -> Callable[[F], F]:
    """Registers a callable as `name`, e.g. "shop.open_orders"; `using` is the alias that its queries go to.

    Raises InvalidDefinition if the name is taken or odd.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InvalidDefinition(
            f"workload {name!r}: write it app.name, in lower case letters, digits and underscores"
        )

    def register(function: F) -> F:
        if is_own(name) and not function.__module__.startswith(OWN_PREFIX):
            raise InvalidDefinition(
                f"workload {name!r}: names that begin with {OWN_PREFIX} are pgperf's own; rename it"
            )
        known = WORKLOADS.setdefault(name, RegisteredWorkload(function, using))
        if _origin(known.function) != _origin(function):
            raise InvalidDefinition(
                f"workload {name!r}: already registered by {'.'.join(_origin(known.function))}; rename one"
            )
        WORKLOADS[name] = RegisteredWorkload(function, using)
        return function

    return register


def get(name: str) -> Callable[..., Any]:
    """The callable of that name. Raises InvalidDefinition, which lists the registered names."""
    return find(name).function


def find(name: str) -> RegisteredWorkload:
    """The workload of that name. Raises InvalidDefinition, which lists the registered names."""
    try:
        return WORKLOADS[name]
    except KeyError:
        known = ", ".join(names()) or "none"
        raise InvalidDefinition(f"orm: no workload {name!r} is registered; registered are: {known}") from None


def names() -> list[str]:
    """The names registered so far, sorted."""
    return sorted(WORKLOADS)


def is_own(name: str) -> bool:
    """Is it one that pgperf ships?"""
    return name.startswith(OWN_PREFIX)


def title(name: str) -> str:
    """The first line of the callable's docstring; "" if it has none. Raises InvalidDefinition for an unknown name."""
    lines = (get(name).__doc__ or "").strip().splitlines()
    return lines[0].strip() if lines else ""


def _origin(function: Callable[..., Any]) -> tuple[str, str]:
    """Equal for a function and the same one of its module loaded again."""
    return function.__module__, function.__qualname__
