"""What a field takes and what it refuses: above all, nothing that libpq or a resolver would read as
something else.
"""

from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.db import connections
from hypothesis import given
from hypothesis import strategies as st

from pgperf.core.delayed_routes import lengthened
from pgperf.db import validators
from pgperf.models import Database, Target

#: Neither a database's name, nor a user's, nor a host.
HOSTILE = [
    "host=evil.example",
    "app host=evil.example",
    "app' host='evil.example",
    "postgres://evil.example/app",
    "postgresql://evil.example",
    "postgresql:///app?host=evil.example",
    "%zz",
    "%2Ftmp",
    "a b",
    " a",
    "a\n",
    "a\r\nb",
    "a\tb",
    "a\x00b",
    "a\x7fb",
    "a" * 65536,
    "-c",
    "-hevil.example",
    "a,b",
    "a\\b",
    'a"b',
    "a;b",
    "$(id)",
    "a`id`",
    "\u202eevil",
    "a\u200bb",
    "\ud800",
    "",
    "{}",
    "@/etc/passwd",
]
HOSTS = [
    "db.evil.example,other.example",
    "db.example:5432",
    "[::1]",
    "::1%eth0",
    "fe80::1%2",
    "http://db.example",
    "169.254.169.254/latest",
    "müller.example",
    "bücher",
    "2130706433",
    "0x7f000001",
    "127.1",
    "0177.0.0.1",
    "127.0.0.1.5",
    "db..example",
    ".db",
    "-db.example",
    "db-.example",
    "a" * 64,
    "a." * 127 + "a",
    "/",
    "/run/../tmp",
    "/run/postgresql\n",
    "/run/post gres",
    "/run/%2e%2e",
    "/" + "x" * 101,
    "@abstract",
    "./socket",
    "~/socket",
    "db.example/",
    "user@db.example",
]


@pytest.mark.parametrize("value", HOSTILE)
@pytest.mark.parametrize("validate", [validators.plain_text, validators.host])
def test_no_name_is_a_connection_string(validate: Any, value: str) -> None:
    with pytest.raises(ValidationError):
        validate(value)


@pytest.mark.parametrize("value", HOSTS)
def test_odd_hosts_are_refused(value: str) -> None:
    with pytest.raises(ValidationError):
        validators.host(value)


@pytest.mark.parametrize(
    "value", ["app", "app_2", "postgres.projectref", "user@tenant", "größe", "a-b", "x" * 63]
)
def test_plain_names(value: str) -> None:
    validators.plain_text(value)


def test_a_name_is_counted_in_bytes() -> None:
    with pytest.raises(ValidationError):
        validators.plain_text("ö" * 32)


@pytest.mark.parametrize(
    "value",
    [
        "db",
        "db.example",
        "db.example.",
        "xn--mller-kva.example",
        "db_1",
        "10.0.0.1",
        "::1",
        "2001:db8::1",
        "localhost",
        "/run/postgresql",
        "/tmp/pgperf",
        "3com.example",
    ],
)
def test_hosts(value: str) -> None:
    validators.host(value)


@pytest.mark.parametrize("value", ["/tmp", "/tmp/", "//tmp", "/tmp/.", "/./tmp//", "/var/tmp", "/dev/shm"])
def test_where_everybody_may_listen_no_password_goes(value: str) -> None:
    with pytest.raises(ValidationError, match=r"unix_socket_directories.*PGPERF\['ALLOWED_HOSTS'\]"):
        validators.host(value)


def test_unless_settings_allow_it(settings: Any) -> None:
    settings.PGPERF = {**settings.PGPERF, "ALLOWED_HOSTS": ["/tmp"]}
    validators.host("/tmp")
    with pytest.raises(ValidationError):
        validators.host("/var/tmp")


def test_or_the_sites_own_login_goes_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(connections.databases, "near", {"HOST": "/tmp"})
    validators.host("/tmp")
    with pytest.raises(ValidationError):
        validators.host("/dev/shm")


def target(**fields: Any) -> Target:
    return Target(**{"route": "tcp", "host": "db.example", "port": 5432, "sslmode": "disable", **fields})


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *[("host", host) for host in (*HOSTILE, *HOSTS, "/tmp")],
        *[("port", port) for port in (0, -1, 65536, 2**31, "5432,5433", "5432 x", "", "0x10", None, "1e3")],
        *[("sslmode", mode) for mode in ("", "none", "allow", "require options=x", "disable\n")],
        *[
            ("sslrootcert", name)
            for name in ("../ca", "/etc/ca.crt", "a b", "ca\n", "ca\x00", "-x", "x" * 65536)
        ],
        ("sslrootcert", "ca.crt"),  # with nothing to verify
        *[("user", user) for user in HOSTILE if user],
        *[("credential", value) for value in ("hunter2", "env:HOME", "file:../x", "a" * 65536)],
        *[("pooler", pooler) for pooler in ("statement", "transaction ", "x" * 65536)],
        *[("route", route) for route in ("", "a b", "../tcp", "tcp\n", "ü", "x" * 31)],
    ],
)
def test_the_model_refuses_it_at_its_field(field: str, value: Any) -> None:
    with pytest.raises(ValidationError) as caught:
        target(**{field: value}).full_clean(
            exclude=["database"], validate_unique=False, validate_constraints=False
        )
    assert list(caught.value.message_dict) == [field]


@pytest.mark.parametrize(
    ("host", "sslmode", "allowed"),
    [
        ("db.example", "verify-full", True),
        ("db.example", "verify-ca", False),
        ("db.example", "require", False),
        ("db.example", "prefer", False),
        ("db.example", "disable", False),
        ("/run/postgresql", "verify-full", False),
    ],
)
def test_clear_text_passwords_need_a_verified_server(host: str, sslmode: str, allowed: bool) -> None:
    row = target(host=host, sslmode=sslmode, allow_cleartext_password=True)
    if allowed:
        row.clean()
        return
    with pytest.raises(ValidationError) as caught:
        row.clean()
    assert list(caught.value.message_dict) == ["allow_cleartext_password"]


@pytest.mark.parametrize("sslmode", ["verify-ca", "verify-full"])
def test_certificates_go_with_what_verifies(sslmode: str) -> None:
    target(sslrootcert="ca.crt", sslmode=sslmode).clean()


@pytest.mark.parametrize("field", ["dbname", "user"])
@pytest.mark.parametrize("value", HOSTILE)
def test_a_database_refuses_it_at_its_field(field: str, value: str) -> None:
    if field == "user" and not value:
        return  # empty: the alias's own
    row = Database(**{"name": "demo", "dbname": "app", "credential": "alias:default", field: value})
    with pytest.raises(ValidationError) as caught:
        row.full_clean(validate_unique=False, validate_constraints=False)
    assert list(caught.value.message_dict) == [field]


@pytest.mark.parametrize(
    "value",
    [
        "",
        "hunter2",
        "alias:",
        "alias:a b",
        "alias:default\n",
        "env:HOME",
        "env:PGPERF_SECRET_",
        "env:PGPERF_SECRET_a",
        "file:",
        "file:../x",
        "file:/etc/passwd",
        "file:a/b",
        "file:a\x00b",
        "postgres://u:p@h/d",
        "password=x",
        "a" * 65536,
    ],
)
def test_a_credential_is_a_reference(value: str) -> None:
    with pytest.raises(ValidationError):
        Database._meta.get_field("credential").clean(value, None)


@given(st.text("abzABZ019_-", min_size=1, max_size=30))
def test_every_route_of_a_target_may_be_in_a_benchmark(route: str) -> None:
    Target(route=route).clean_fields(exclude={each.name for each in Target._meta.fields} - {"route"})
    validators.name_list([route, lengthened(route, 1.0)])


@pytest.mark.parametrize("value", ["two\nlines", "\x1b[2J", "bell\x07", "\x85"])
def test_a_line_has_no_control_characters(value: str) -> None:
    with pytest.raises(ValidationError):
        validators.one_line(value)


def test_a_benchmark_names_a_hundred_routes_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    validators.name_list([f"tcp+{ms}ms" for ms in range(1, 101)])
    monkeypatch.setattr(validators, "_is_route", lambda name: pytest.fail("each name is looked at"))
    with pytest.raises(ValidationError, match="Choose at most 100 routes"):
        validators.name_list([f"r{number}" for number in range(101)])
