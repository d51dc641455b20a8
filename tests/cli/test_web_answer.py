"""What `doctor` learns from one request to a web server."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from pgperf.cli import web_answer
from pgperf.core.exceptions import ClientFailed
from pgperf.core.records import Route
from tests.clients.test_http_client import NAME, certificate
from tests.clients.web_server import ANSWERS, WebServer, answer

pytest.importorskip("pycurl")


@pytest.fixture
def site() -> Iterator[WebServer]:
    with WebServer() as server:
        yield server


def route(port: int, scheme: str = "http", certificates: str = "") -> Route:
    url = f"{scheme}://{NAME}:{port}"
    return Route("web", "127.0.0.1", port, "", "", "", sslrootcert=certificates, url=url)


@pytest.mark.parametrize("status", ["302 Found", "404 Not Found", "405 Method Not Allowed"])
def test_a_status_of_the_site_is_an_answer(
    site: WebServer, monkeypatch: pytest.MonkeyPatch, status: str
) -> None:
    monkeypatch.setitem(ANSWERS, "/", answer(b"", status, "Location: /login/"))
    assert web_answer.answer(route(site.port)) == f"answers HEAD / with status {status[:3]}"
    assert len(site.requests) == 1


def test_a_server_that_fails_is_a_problem(site: WebServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ANSWERS, "/", answer(b"", "502 Bad Gateway"))
    with pytest.raises(ClientFailed, match=r"^web: status 502"):
        web_answer.answer(route(site.port))


def test_a_port_where_nothing_listens_is_a_problem() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        with pytest.raises(ClientFailed, match=r"^web: no connection: nothing listens at the address"):
            web_answer.answer(route(bound.getsockname()[1]))


def test_the_targets_certificates_decide(tmp_path: Path) -> None:
    files, others = certificate(tmp_path, NAME), certificate(tmp_path / "other", NAME)
    with WebServer(files) as site:
        assert web_answer.answer(route(site.port, "https", files[0])) == "answers HEAD /"
        with pytest.raises(ClientFailed, match=r"^web: TLS: the server's certificate does not fit"):
            web_answer.answer(route(site.port, "https", others[0]))
