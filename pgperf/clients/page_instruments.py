"""Instruments that part the time of a page: template, query compilation, object construction,
statements, and the rest.

They replace methods of Django while they are in place, and cost time themselves. So they are used
outside of timed slices only, in turn with operations without them.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from time import monotonic_ns
from typing import Any

from django.db import models
from django.db.models.sql.compiler import SQLCompiler
from django.template import base as template

#: The parts, and `rest`: view, middleware, and what the ORM does beside compiling and constructing.
PARTS = ("statements", "query_compilation", "object_construction", "template", "rest")


class Stopwatch:
    """The time of each part without the parts inside it, ns."""

    def __init__(self) -> None:
        self.spent = dict.fromkeys(PARTS, 0)
        self._open: list[str] = []
        self._since = 0

    def timed(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, whose calls are counted to the part."""

        def call(*args: Any, **named: Any) -> Any:
            self.enter(part)
            try:
                return function(*args, **named)
            finally:
                self.leave()

        return call

    def enter(self, part: str) -> None:
        self._charge()
        self._open.append(part)

    def leave(self) -> None:
        self._charge()
        self._open.pop()

    def _charge(self) -> None:
        now = monotonic_ns()
        if self._open:
            self.spent[self._open[-1]] += now - self._since
        self._since = now


def parted(operation: Callable[[], Any], connection: Any, count: int) -> tuple[dict[str, float], float]:
    """The mean time of each part of the operation, µs, by `count` operations with instruments, and
    the mean time of as many without them, each after one with them.
    """
    watch, plain_ns = Stopwatch(), 0
    instrumented = watch.timed("rest", operation)
    for _ in range(count):
        with _in_place(watch, connection):
            instrumented()
        begin = monotonic_ns()
        operation()
        plain_ns += monotonic_ns() - begin
    return {part: ns / count / 1000 for part, ns in watch.spent.items()}, plain_ns / count / 1000


@contextmanager
def _in_place(watch: Stopwatch, connection: Any) -> Iterator[None]:
    with ExitStack() as stack:
        stack.enter_context(connection.execute_wrapper(_statement(watch)))
        stack.enter_context(_replaced(template.Template, "render", "template", watch))
        stack.enter_context(_replaced(SQLCompiler, "as_sql", "query_compilation", watch))
        stack.enter_context(_constructing(watch))
        yield


def _statement(watch: Stopwatch) -> Callable[..., Any]:
    def wrapper(execute: Any, *args: Any) -> Any:
        watch.enter("statements")
        try:
            return execute(*args)
        finally:
            watch.leave()

    return wrapper


@contextmanager
def _replaced(owner: type[Any], method: str, part: str, watch: Stopwatch) -> Iterator[None]:
    own = owner.__dict__[method]
    setattr(owner, method, watch.timed(part, own))
    try:
        yield
    finally:
        setattr(owner, method, own)


@contextmanager
def _constructing(watch: Stopwatch) -> Iterator[None]:
    """Django constructs an object from its row in the class method `from_db`."""
    own = models.Model.__dict__["from_db"]
    counted = classmethod(watch.timed("object_construction", own.__func__))
    setattr(models.Model, "from_db", counted)  # noqa: B010
    try:
        yield
    finally:
        setattr(models.Model, "from_db", own)  # noqa: B010
