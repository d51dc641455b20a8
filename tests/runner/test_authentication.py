"""How a route's clients log in: read from real servers, and from programs that answer oddly.

`tests/security/test_clear_text.py` tests that no password is sent to whoever asks for it.
"""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgperf.core.exceptions import RunCancelled
from pgperf.core.records import Route
from pgperf.runner import authentication
from pgperf.runner.authentication import LoginConditions
from pgperf.runner.client_process import while_waiting
from tests.impostor import Impostor, error, message
from tests.impostor import authentication as asks

SECRET = "canary-of-this-test"


@pytest.fixture
def trusting(routes: dict[str, Route], stack: dict[str, str]) -> dict[str, Route]:
    """The stack's routes, and those without a password."""
    ports = {"tcp": stack["PGPERF_DB_PORT"], "pgbouncer": stack["PGPERF_PGBOUNCER_TRUST_PORT"]}
    more = {
        f"{name}_trust": replace(routes[name], user="demo_trusted", password="", port=int(port))
        for name, port in ports.items()
    }
    tls = replace(routes["pgbouncer"], sslmode="require")
    return {**routes, **more, "pgbouncer_tls": tls}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("socket", LoginConditions("scram-sha-256", 4096, "none")),
        ("tcp", LoginConditions("scram-sha-256", 4096, "none")),
        ("pgbouncer", LoginConditions("scram-sha-256", 4096, "none")),
        ("pgbouncer_tls", LoginConditions("scram-sha-256", 4096, "TLSv1.3")),
        ("tcp_trust", LoginConditions("none (trust, peer or certificate)", None, "none")),
        ("pgbouncer_trust", LoginConditions("none (trust, peer or certificate)", None, "none")),
    ],
)
def test_the_conditions_of_the_stacks_routes(
    trusting: dict[str, Route], name: str, expected: LoginConditions
) -> None:
    assert authentication.conditions(trusting[name]) == expected


def test_prefer_uses_tls_where_the_server_has_it(trusting: dict[str, Route]) -> None:
    for name, tls in (("pgbouncer", "TLSv1.3"), ("tcp", "none")):
        assert authentication.conditions(replace(trusting[name], sslmode="prefer")).tls == tls


def route_to(server: Impostor) -> Route:
    return Route("tcp", server.host, server.port, "app", "app", SECRET)


@pytest.mark.parametrize(
    ("answer", "method"),
    [
        (asks(0), "none (trust, peer or certificate)"),
        (asks(3), "password"),
        (asks(5, b"salt"), "md5"),
        (asks(7), "gss"),
        (asks(10, b"OAUTHBEARER\0\0"), None),
        (asks(10, b"SCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0"), "scram-sha-256"),
        (asks(77), None),
        (error("no pg_hba.conf entry", "28000"), None),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", None),
        (b"R\0\0\0\4", None),
        (b"R\x7f\xff\xff\xff", None),
    ],
)
def test_other_answers(answer: bytes, method: str | None) -> None:
    """The program refuses the login after that, so it has no iterations."""
    with Impostor(answer) as server:
        found = authentication.conditions(route_to(server))
        assert (found.authentication, found.scram_iterations) == (method, None)
        assert server.passwords == []


def test_a_server_that_is_gone_is_unknown() -> None:
    with Impostor() as server:
        gone = route_to(server)
    assert authentication.conditions(gone) == LoginConditions()


def test_a_server_that_does_not_answer_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(authentication, "_TIMEOUT_S", 0.2)
    with Impostor(b"") as server:
        assert authentication.conditions(route_to(server)) == LoginConditions()


def test_a_wait_for_its_answer_looks_for_a_cancel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(authentication, "POLL_S", 0.01)
    looks = iter(range(20))

    def look() -> None:
        if next(looks) == 10:
            raise RunCancelled("enough")

    with Impostor(b"") as server, while_waiting(look), pytest.raises(RunCancelled):
        authentication.check(route_to(server))


@given(st.integers(1, 2**31 - 1).filter(lambda number: number < 10**9))
def test_the_iterations_are_in_the_servers_first_message(number: int) -> None:
    class Wire:
        def __init__(self, data: bytes) -> None:
            self.data = data

        def sendall(self, data: bytes) -> None:
            assert SECRET.encode() not in data

        def settimeout(self, seconds: float) -> None: ...

        def recv(self, count: int) -> bytes:
            head, self.data = self.data[:count], self.data[count:]
            return head

    first = message(b"R", b"\0\0\0\x0b" + f"r=xyz,s=QSXCR+Q6sek8bf92,i={number}".encode())
    assert authentication._scram_iterations(Wire(first), 1e12) == number
    assert authentication._scram_iterations(Wire(first.replace(b",i=", b",j=")), 1e12) is None


def test_iterations_are_stored_for_scram_only() -> None:
    assert LoginConditions("md5", None, "none").to_json() == {"authentication": "md5", "tls": "none"}
    assert LoginConditions("scram-sha-256", 1, None).to_json() == {
        "authentication": "scram-sha-256", "scram_iterations": 1, "tls": None,
    }  # fmt: skip
