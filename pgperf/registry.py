"""Registers the ORM callables of workloads, and hooks of a run. Standard library only.

    @workload("shop.open_orders")
    def open_orders(customer_id):
        return Order.objects.filter(customer_id=customer_id, open=True)

pgperf calls it once per operation, with the workload's arguments, and counts the rows of the
result: the length of a list or a query set (which is evaluated if necessary), 0 for None, and 1 for
anything else.

A function that `async def` defines is the form for the layer django_orm_async. It has the name and
the alias of the form for the other layers.

    @before_block
    def fresh_servers(start):
        restart(start.urls)

pgperf calls a hook before each block of a run that requests pages over HTTP, in the run's process.
"""

import re
from collections.abc import Callable, Mapping
from inspect import iscoroutinefunction
from typing import Any, NamedTuple, TypeVar

from pgperf.core.exceptions import InvalidDefinition

F = TypeVar("F", bound=Callable[..., Any])

#: The prefix of the callables that pgperf ships, which run with minimal settings.
OWN_PREFIX = "pgperf."

_NAME = re.compile(r"[a-z_][a-z0-9_]*(\.[a-z_][a-z0-9_]*)+")


class RegisteredWorkload(NamedTuple):
    """A callable in one form or both. `named_alias`: "" if neither form names one."""

    function: Callable[..., Any] | None = None
    named_alias: str = ""
    asynchronous: Callable[..., Any] | None = None

    @property
    def using(self) -> str:
        """The alias of DATABASES that its queries use."""
        return self.named_alias or "default"


class BlockStart(NamedTuple):
    """The block that a run is about to begin.

    `block`: its number, from 0. `urls`: the base URL of each web route that it measures, by the
    route's name without a delay.
    """

    block: int
    urls: Mapping[str, str]


BlockHook = Callable[[BlockStart], object]
H = TypeVar("H", bound=BlockHook)

#: Origin -> hook, in the order of registration.
BLOCK_HOOKS: dict[tuple[str, str], BlockHook] = {}

#: Name -> registered workload.
WORKLOADS: dict[str, RegisteredWorkload] = {}


def workload(name: str, using: str = "") -> Callable[[F], F]:
    """Register a callable as `name`, e.g. "shop.open_orders".

    `using`: the alias of its queries; without it, that which the other form of the name has, else
    "default". Raises InvalidDefinition if the name is taken or malformed, or if the other form names
    another alias.
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
        form = "asynchronous" if iscoroutinefunction(function) else "function"
        known = WORKLOADS.get(name, RegisteredWorkload())
        there = getattr(known, form) or function
        if _origin(there) != _origin(function):
            raise InvalidDefinition(
                f"workload {name!r}: already registered by {'.'.join(_origin(there))}; rename one"
            )
        alias = _alias(name, known, form, using)
        WORKLOADS[name] = known._replace(named_alias=alias, **{form: function})
        return function

    return register


def _alias(name: str, known: RegisteredWorkload, form: str, using: str) -> str:
    """The alias of both forms of a workload, of which one is registered now."""
    has_other = bool(known.function if form == "asynchronous" else known.asynchronous)
    if has_other and using and known.named_alias not in ("", using):
        raise InvalidDefinition(
            f"workload {name!r}: using={using!r}, but its other form has using={known.named_alias!r}; "
            "name one alias for both"
        )
    return using or known.named_alias


def get(name: str) -> Callable[..., Any]:
    """The callable of that name. Raises InvalidDefinition if there is none, with the remedy."""
    function = find(name).function
    if function is None:
        raise InvalidDefinition(f"orm: {name} has an async function only; register one without async too")
    return function


def get_async(name: str) -> Callable[..., Any]:
    """The asynchronous callable of that name. Raises InvalidDefinition like `get`."""
    function = find(name).asynchronous
    if function is None:
        raise InvalidDefinition(f"orm: {name} has no async function; register an async def of that name too")
    return function


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
    """Is it the name of a callable that pgperf ships?"""
    return name.startswith(OWN_PREFIX)


def title(name: str) -> str:
    """The first line of the callable's docstring; "" without one.

    Raises InvalidDefinition if unknown.
    """
    found = find(name)
    lines = ((found.function or found.asynchronous).__doc__ or "").strip().splitlines()
    return lines[0].strip() if lines else ""


def before_block(hook: H) -> H:
    """Register a hook that starts web servers anew, so that no figure depends on one start of them.

    It returns when the servers answer. An exception ends the run; its message is the run's error.
    """
    BLOCK_HOOKS[_origin(hook)] = hook
    return hook


def _origin(function: Callable[..., Any]) -> tuple[str, str]:
    """The module and name of a function. They stay equal if its module is loaded again."""
    return function.__module__, function.__qualname__
