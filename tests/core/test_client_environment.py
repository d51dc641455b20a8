"""Which entries of PGPERF["ENVIRONMENTS"] are environments."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgperf.core.client_environment import DEFAULT, ClientEnvironment


def test_a_path_alone_names_a_python() -> None:
    assert ClientEnvironment.parse("old", "/opt/old/bin/python") == ClientEnvironment(
        "old", "/opt/old/bin/python"
    )
    assert ClientEnvironment.parse("old", Path("/opt/old/bin/python")).python == "/opt/old/bin/python"


def test_a_whole_entry() -> None:
    found = ClientEnvironment.parse(
        "pool-on", {"python": "/opt/a/bin/python", "settings": "site.pool", "variables": {"LD_BIND_NOW": "1"}}
    )
    assert (found.settings, found.variables) == ("site.pool", {"LD_BIND_NOW": "1"})
    assert found.root == "/opt/a"


@pytest.mark.parametrize("name", ["", DEFAULT, "a b", "../a", "a/b", "é", "-a", ".a", "a\n", "a" * 31])
def test_names_that_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="is not a name"):
        ClientEnvironment.parse(name, "/opt/a/bin/python")


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "absolute path"),
        (1, "absolute path"),
        ("python3", "absolute path"),
        ("~/a/bin/python", "absolute path"),
        ("/a\0b", "absolute path"),
        ({}, "absolute path"),
        ({"python": "/a/bin/python", "argv": []}, "has argv: choose from python"),
        ({"python": "/a/bin/python", "settings": "a b"}, "module's name"),
        ({"python": "/a/bin/python", "settings": None}, "module's name"),
        ({"python": "/a/bin/python", "variables": []}, "dict of strings"),
        ({"python": "/a/bin/python", "variables": {"A": 1}}, "dict of strings"),
    ],
)
def test_values_that_are_refused(value: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        ClientEnvironment.parse("a", value)


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("A B", "x", "cannot be set"),
        ("1A", "x", "cannot be set"),
        ("A", "x\0", "cannot be set"),
        ("PGHOST", "evil.example", "libpq"),
        ("PGPASSFILE", "/a", "libpq"),
        ("PYTHONHOME", "/a", "set by pgperf"),
        ("DJANGO_SETTINGS_MODULE", "a", "set by pgperf"),
        ("PGPERF_PADDING", "a", "set by pgperf"),
        ("DB_PASSWORD", "hunter2", "looks like a secret"),
        ("DJANGO_SECRET_KEY", "hunter2", "looks like a secret"),
        ("DATABASE_URL", "postgres://app:hunter2@db/app", "looks like a secret"),
    ],
)
def test_variables_that_are_refused(variable: str, value: str, words: str) -> None:
    with pytest.raises(ValueError, match=words) as refused:
        ClientEnvironment.parse("a", {"python": "/a/bin/python", "variables": {variable: value}})
    assert "hunter2" not in str(refused.value)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)
_ENTRIES = st.fixed_dictionaries(
    {"python": st.just("/opt/a/bin/python") | _JSON},
    optional={"settings": st.text() | _JSON, "variables": st.dictionaries(st.text(), st.text()) | _JSON},
)


@given(st.text() | st.sampled_from(["a", "django-6.1"]), _JSON | _ENTRIES)
def test_no_entry_breaks_the_parser(name: str, value: Any) -> None:
    try:
        found = ClientEnvironment.parse(name, value)
    except ValueError:
        return
    assert found.python.startswith("/")
    again = {"python": found.python, "settings": found.settings, "variables": dict(found.variables)}
    assert ClientEnvironment.parse(name, again) == found
    assert not any(variable.startswith("PG") and "_" not in variable for variable in found.variables)
