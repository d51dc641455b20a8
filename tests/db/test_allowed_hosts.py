"""Entries of PGPERF["ALLOWED_HOSTS"]."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgperf.db.allowed_hosts import AllowedHost, entry_for

HOSTS = st.sampled_from(["localhost", "db.example", "127.0.0.1", "::1", "fe80::1:2", "/run/postgresql"])


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("db.example", "db.example", ""),
        ("db.example:6432", "db.example", "6432"),
        ("db.example:*", "db.example", "*"),
        ("::1", "::1", ""),
        ("[::1]", "::1", ""),
        ("[::1]:5432", "::1", "5432"),
        ("::ffff:127.0.0.1", "::ffff:127.0.0.1", ""),
        ("/run/postgresql", "/run/postgresql", ""),
        ("/run/postgresql:6432", "/run/postgresql", "6432"),
    ],
)
def test_an_entry_is_a_host_with_or_without_a_port(text: str, host: str, port: str) -> None:
    assert AllowedHost.parse(text) == AllowedHost(host, port)


@pytest.mark.parametrize(
    "text", ["", ":", ":5432", "a b", "a,b", "a:b", "a:0", "a:65536", "[a]", "[::1", "a:1:*"]
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a host"):
        AllowedHost.parse(text)


@given(HOSTS, st.integers(1, 65535), HOSTS, st.integers(1, 65535))
def test_the_entry_for_an_address_allows_it_alone(host: str, port: int, other: str, other_port: int) -> None:
    entry = AllowedHost.parse(entry_for(host, port))
    assert entry.allows(other, other_port, "5432") == ((host, port) == (other, other_port))
