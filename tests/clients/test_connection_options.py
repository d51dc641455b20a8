"""Every key of OPTIONS has a rule, and a client of the site's own workload follows it."""

import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import psycopg
import psycopg2
import pytest
from django.db.backends.postgresql import base, client
from psycopg import pq

from pgperf.clients import connection_options
from pgperf.clients.connection_options import RULES, Handling
from pgperf.core.exceptions import InvalidDefinition

DOCUMENT = Path(__file__).parent.parent.parent / "docs" / "your-queries.md"
KEYS = [key for rule in RULES for key in rule.keys]


#: Run alone: a process that has loaded a driver finds that driver's libpq again.
_CONNDEFAULTS = """
import ctypes
from ctypes.util import find_library
class Option(ctypes.Structure):
    _fields_ = [(name, ctypes.c_char_p) for name in ("keyword", *"abcde")] + [("dispsize", ctypes.c_int)]
libpq = ctypes.CDLL(find_library("pq"))
libpq.PQconndefaults.restype = ctypes.POINTER(Option)
options, at = libpq.PQconndefaults(), 0
while options[at].keyword:
    print(options[at].keyword.decode())
    at += 1
"""


def keywords_of_the_system() -> set[str]:
    """The keywords of the libpq that the system has, by PQconndefaults."""
    done = subprocess.run([sys.executable, "-c", _CONNDEFAULTS], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def keywords_of_psycopg() -> set[str]:
    """The keywords of the libpq that psycopg has loaded."""
    return {option.keyword.decode() for option in pq.Conninfo.get_defaults()}


def keys_that_django_reads() -> set[str]:
    """Keys of OPTIONS in the source of Django's backend."""
    text = inspect.getsource(base) + inspect.getsource(client)
    found = re.findall(r"""(?:options|OPTIONS"\])(?:\.get|\.pop)?[(\[]"(\w+)\"""", text)
    return {*found, *re.findall(r"""conn_params(?:\.pop|\.setdefault)?[(\[]\s*"(\w+)\"""", text)}


def parameters(connect: Any) -> set[str]:
    """The named parameters of a driver's `connect`."""
    kinds = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    return {each.name for each in inspect.signature(connect).parameters.values() if each.kind not in kinds}


@pytest.mark.parametrize(
    ("known", "at_least"),
    [
        (keywords_of_the_system, {"target_session_attrs", "service"}),
        (keywords_of_psycopg, {"target_session_attrs", "require_auth"}),
        (
            keys_that_django_reads,
            {"pool", "isolation_level", "assume_role", "server_side_binding", "service"},
        ),
        (lambda: parameters(psycopg.connect), {"prepare_threshold", "context", "row_factory"}),
        (lambda: parameters(psycopg2.connect), {"connection_factory", "cursor_factory"}),
    ],
)
def test_each_known_key_has_a_rule(known: Any, at_least: set[str]) -> None:
    found = known()
    assert at_least <= found
    assert found - set(KEYS) == set()


def test_no_key_has_two_rules() -> None:
    assert len(KEYS) == len(set(KEYS))


def test_the_document_has_the_same_table() -> None:
    text = DOCUMENT.read_text()
    section = text[text.index("\n## OPTIONS") : text.index("\n## What pgperf refuses")]
    rows = [[cell.strip() for cell in row.split("|")[1:-1]] for row in re.findall(r"(?m)^\| `.*$", section)]
    written = [(tuple(re.findall(r"`(\w+)`", keys)), handling, reason) for keys, handling, reason in rows]
    assert written == [(rule.keys, str(rule.handling), rule.reason) for rule in RULES]


@pytest.mark.parametrize("key", KEYS)
def test_a_key_is_handled_as_its_rule_says(key: str) -> None:
    options = {key: "scram-sha-256", "of_an_engine": 1}
    if connection_options.handling(key) == Handling.REFUSED:
        with pytest.raises(InvalidDefinition, match=rf"^OPTIONS\['{key}'\] of the alias 'site': "):
            connection_options.kept("site", options, "extended", "django_orm")
        return
    kept = connection_options.kept("site", options, "extended", "django_orm")
    assert (key in kept) == (connection_options.handling(key) == Handling.KEPT)
    assert kept["of_an_engine"] == 1


def test_a_refused_key_that_is_off_does_not_matter() -> None:
    assert connection_options.kept("site", {"async_": False, "replication": ""}, "simple", "django_orm") == {}


def test_factories_belong_to_the_sites_driver_and_to_mode_simple() -> None:
    options = {"cursor_factory": dict, "row_factory": tuple}
    assert connection_options.kept("site", options, "simple", "django_orm") == options
    assert connection_options.kept("site", options, "prepared", "django_orm") == {"row_factory": tuple}
    assert connection_options.kept("site", options, "simple", "django_orm_psycopg2") == {}


@pytest.mark.parametrize(
    ("value", "allowed"),
    [
        ("", True),
        ("scram-sha-256", False),
        ("md5,scram-sha-256", False),
        ("password", True),
        ("scram-sha-256, password", True),
        ("!password", False),
        ("!md5,!password", False),
        ("!md5", True),
        ("none", False),
    ],
)
def test_a_value_of_require_auth_allows_clear_text(value: str, allowed: bool) -> None:
    assert connection_options.allows_clear_text(value) == allowed
