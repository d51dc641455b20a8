"""Which OPTIONS of an alias let no query through: found by trying, on the real server."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from django.db import connections
from django.db.backends.signals import connection_created
from psycopg.rows import dict_row

from pgperf.core.exceptions import UnusableOptions
from pgperf.db import usable_options

pytestmark = pytest.mark.django_db


class NoCursor:
    """It can be made as a cursor is, and is none."""

    def __init__(self, *_given: Any, **_named: Any) -> None: ...


def no_cursor(*_given: Any, **_named: Any) -> None: ...


def cursor_of_tuples(connection: Any, row_factory: Any) -> Any:
    """A cursor that does not go with another option."""
    if row_factory is dict_row:
        raise TypeError(row_factory)
    return psycopg.ClientCursor(connection, row_factory=row_factory)


def checked(options: dict[Any, Any], own: Any = None) -> None:
    default = connections["default"]
    alias = type(default)({**default.settings_dict, "OPTIONS": options}, "shop")
    usable_options.check(alias, options if own is None else own)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("cursor_factory", "psycopg.SecretCursor"),
        ("cursor_factory", 4711),
        ("cursor_factory", dict),
        ("cursor_factory", object),
        ("cursor_factory", NoCursor),
        ("cursor_factory", no_cursor),
        ("row_factory", "psycopg.secret_row"),
        ("row_factory", tuple),
        ("row_factory", no_cursor),
        (4711, "secret"),
    ],
)
def test_an_option_that_no_driver_takes_is_named_without_its_value(key: Any, value: Any) -> None:
    with pytest.raises(UnusableOptions) as caught:
        checked({"application_name": "pgperf-test", key: value})
    said = str(caught.value)
    assert said.startswith(f"OPTIONS[{key!r}], ")
    assert " of the alias 'shop': no query works with it (" in said
    assert said.endswith("Correct it in DATABASES, or remove it")
    assert "ecret" not in said
    assert "application_name" not in said


@pytest.mark.filterwarnings("ignore:coroutine")
def test_a_cursor_of_another_kind_is_named() -> None:
    with pytest.raises(UnusableOptions, match=r"OPTIONS\['cursor_factory'\], a class, of the alias"):
        checked({"cursor_factory": psycopg.AsyncCursor})


def test_each_wrong_option_is_named() -> None:
    words = r"OPTIONS\['cursor_factory'\].* and OPTIONS\['row_factory'\].*with each alone too \(TypeError\)"
    with pytest.raises(UnusableOptions, match=words) as caught:
        checked({"cursor_factory": "x", "row_factory": "y", "keepalives": 1})
    assert "keepalives" not in str(caught.value)


def test_options_that_fail_only_together_are_all_named() -> None:
    words = r"OPTIONS\['cursor_factory'\].* and OPTIONS\['row_factory'\].*with them together \(TypeError\)"
    with pytest.raises(UnusableOptions, match=words):
        checked({"cursor_factory": cursor_of_tuples, "row_factory": dict_row})


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"cursor_factory": psycopg.ClientCursor, "row_factory": dict_row},
        {"cursor_factory": cursor_of_tuples},
        {"no_such_key": 1},
        {"isolation_level": 4711},
        {"assume_role": "no_such_role"},
        {"port": 1},
    ],
)
def test_options_that_work_and_errors_that_name_theirs_are_none(options: dict[str, Any]) -> None:
    checked(options)


def test_options_that_are_not_the_alias_s_own_are_not_accused() -> None:
    checked({"cursor_factory": "x", "keepalives": 1}, own=["keepalives"])


@pytest.fixture
def failing_receiver() -> Iterator[None]:
    """The site's own code fails when Django has connected."""

    def fail(**_: Any) -> None:
        raise TypeError("4711")

    connection_created.connect(fail)
    yield
    connection_created.disconnect(fail)


def test_an_error_without_any_option_is_not_theirs(failing_receiver: None) -> None:
    checked({"keepalives": 1})


@pytest.mark.parametrize(("options", "kind"), [([("a", 1)], "list"), (None, "NoneType"), ("a=secret", "str")])
def test_options_are_a_mapping(options: Any, kind: str) -> None:
    with pytest.raises(
        UnusableOptions, match=rf"the alias 'shop' of DATABASES: of type {kind}; write a dict"
    ):
        usable_options.check_kind("shop", options)
    usable_options.check_kind("shop", {})
