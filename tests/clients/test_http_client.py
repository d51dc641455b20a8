"""The client of the layer http against a small web server, well-behaved and not."""

import os
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from pgperf.clients import page_request
from pgperf.core import protocol
from pgperf.core.schedule import due_in
from tests.clients.driving import Driven, Subject
from tests.clients.test_open_loop import MS, SCHEDULES, TWENTY
from tests.clients.test_open_loop import ask as at_rate
from tests.clients.web_server import PAGE, WebServer, answer

pytest.importorskip("pycurl")

from pgperf.clients.http import exchange

HTTP = Subject("http", "simple", "pgperf.clients.programs.http_client")
IMPATIENT = Subject("http", "simple", "tests.clients.impatient_http_client")
NAME = "site.example"

Ask = Callable[..., Driven]


@pytest.fixture
def site() -> Iterator[WebServer]:
    with WebServer() as server:
        yield server


@pytest.fixture
def ask(tmp_path: Path) -> Iterator[Ask]:
    """Starts a client for a path of a server."""
    running: list[Driven] = []

    def start(
        server: WebServer, path: str = "/", url: str = "", subject: Subject = HTTP, **changes: object
    ) -> Driven:
        client = Driven.start(subject, Path("unused")).__enter__()
        running.append(client)
        page = protocol.Page(path, **{k: v for k, v in changes.items() if k in protocol.Page._fields})
        rest = {name: value for name, value in changes.items() if name not in protocol.Page._fields}
        client.send(
            protocol.Spec(
                layer="http", host="127.0.0.1", port=server.port, url=url or f"http://{NAME}:{server.port}",
                page=page, spawned_ns=time.monotonic_ns(), runner_pid=os.getpid(),
            )._replace(**rest)
        )  # fmt: skip
        return client

    yield start
    for client in running:
        client.__exit__(None, None, None)


def counted(count: int, seq: int = 1, lead_in_ops: int = 1) -> protocol.Slice:
    return protocol.Slice(seq=seq, lead_in_ops=lead_in_ops, lead_in_ns=0, count=count)


def test_each_operation_is_one_request_with_the_urls_own_name(site: WebServer, ask: Ask) -> None:
    client = ask(site, "/books/?page=2", cold=False)
    ready = client.read(protocol.Ready)
    assert ready.rows_per_op is None
    reply, parts = client.phased_slice(counted(7))
    assert (reply.ops, reply.lead_in_ops, reply.rows, reply.errors) == (7, 1, None, {})
    assert reply.lengths == [len(PAGE), len(PAGE)]
    assert reply.phases == list(protocol.HTTP_PHASES)
    durations, connects, first_bytes = parts
    assert list(connects) == [0] * 7
    assert all(0 < first < whole for first, whole in zip(first_bytes, durations, strict=True))
    assert len(site.requests) == 9  # once to see that it works, the lead-in, and seven
    assert all(head.startswith("GET /books/?page=2 HTTP/1.1\r\n") for head in site.requests)
    assert all(f"\r\nHost: {NAME}:{site.port}\r\n" in head for head in site.requests)
    assert site.connections == 1


def test_the_site_gets_the_headers_that_the_view_gets_in_process(
    site: WebServer, ask: Ask, settings: Any
) -> None:
    """Else a site that chooses its answer by one of them, as Django REST framework does, has two."""
    page, url = protocol.Page("/", cookie="sessionid=4711"), f"http://{NAME}:{site.port}"
    settings.ALLOWED_HOSTS = [NAME]
    ask(site, url=url, cookie=page.cookie, cold=False).read(protocol.Ready)
    _, *lines = site.requests[0].rstrip("\r\n").split("\r\n")
    sent = dict(line.split(": ", 1) for line in lines)
    in_process = page_request.environ(page, url)
    assert {f"HTTP_{name.upper().replace('-', '_')}": value for name, value in sent.items()} == {
        name: value for name, value in in_process.items() if name.startswith("HTTP_")
    }


def test_a_page_of_a_site_below_a_prefix_is_requested_there(site: WebServer, ask: Ask) -> None:
    ask(site, "/books/?page=2", url=f"http://{NAME}:{site.port}/shop", cold=False).read(protocol.Ready)
    assert site.requests[0].startswith("GET /shop/books/?page=2 HTTP/1.1\r\n")
    assert f"\r\nHost: {NAME}:{site.port}\r\n" in site.requests[0]


def test_a_connection_for_each_operation_is_a_phase(site: WebServer, ask: Ask) -> None:
    client = ask(site, connection_mode="per_operation", cold=False)
    client.read(protocol.Ready)
    _reply, (durations, connects, first_bytes) = client.phased_slice(counted(5))
    assert site.connections == 7
    assert all(connects)
    parts = zip(connects, first_bytes, durations, strict=True)
    assert all(connect + first < whole for connect, first, whole in parts)


def test_a_server_that_keeps_no_connection_shows_in_the_phase_connect(ask: Ask) -> None:
    with WebServer(keeps=False) as site:
        client = ask(site, cold=False)
        client.read(protocol.Ready)
        reply, (_durations, connects, _) = client.phased_slice(counted(5))
        assert all(connects)
        assert reply.errors == {}


def test_a_connection_that_was_lost_while_idle_is_opened_again_in_the_lead_in(
    site: WebServer, ask: Ask
) -> None:
    client = ask(site, cold=False)
    client.read(protocol.Ready)
    client.phased_slice(counted(2))
    site.drop_all()
    reply, (_durations, connects, _) = client.phased_slice(counted(3, seq=2))
    assert (site.connections, list(connects), reply.errors) == (2, [0, 0, 0], {})


def test_head_asks_for_no_body(site: WebServer, ask: Ask) -> None:
    site.changing = answer(b"", "200 OK", announced=5000)
    client = ask(site, "/changing", method="HEAD", cold=False)
    client.read(protocol.Ready)
    reply, _ = client.phased_slice(counted(2))
    assert reply.lengths == [0, 0]
    assert site.requests[0].startswith("HEAD ")


def test_cold_phases_have_no_connection_of_their_own(site: WebServer, ask: Ask) -> None:
    ready = ask(site).read(protocol.Ready)
    assert ready.connect_us is None
    assert ready.startup_us
    assert ready.first_us
    assert ready.next_ten_us


def test_no_proxy_and_no_credentials_of_the_surroundings_are_used(site: WebServer, tmp_path: Path) -> None:
    netrc = tmp_path / ".netrc"
    netrc.write_text(f"machine {NAME} login ada password s3cret\n")
    netrc.chmod(0o600)
    proxy, home = "http://127.0.0.1:9", str(tmp_path)
    with Driven.start(HTTP, Path("unused"), http_proxy=proxy, all_proxy=proxy, HOME=home) as client:
        client.send(
            protocol.Spec(
                layer="http", host="127.0.0.1", port=site.port, url=f"http://{NAME}:{site.port}",
                page=protocol.Page("/"), cold=False,
            )
        )  # fmt: skip
        client.read(protocol.Ready)
    assert "Authorization" not in site.requests[0]


# Answers that are not the page


@pytest.mark.parametrize(
    ("target", "shown"),
    [
        ("http://site.example:8000/login/?next=/a/", "http://site.example:8000/login/"),
        ("http://site.example/reset/Mg/s3cret-token/", "http://site.example/reset/…"),
        ("https://files.example/bucket/key?signature=s3cret#s3cret", "https://files.example/bucket/…"),
        ("https://ada:s3cret@files.example", "https://files.example/"),
    ],
)
def test_of_a_redirect_its_target_is_shown_without_what_may_be_secret(target: str, shown: str) -> None:
    assert exchange._place(target) == shown


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/502", "status 502"),
        ("/500", "status 500"),
        ("/304", "status 304"),
        ("/redirect", "status 302: a redirect to http://site.example"),
        ("/nothing", "closed the connection without an answer"),
        ("/endless", "the body is longer than 32 MiB"),
        ("/garbage", "the answer is not HTTP"),
    ],
)
def test_an_answer_that_is_not_the_page_ends_the_client_before_any_slice(
    site: WebServer, ask: Ask, path: str, words: str
) -> None:
    client = ask(site, path, cold=False)
    error = client.read(protocol.Error)
    assert words in error.message
    assert error.stage == "ready"
    assert error.message.isprintable()
    assert client.wait() == protocol.EXIT_FAILED


@pytest.mark.parametrize("path", ["/drip", "/silent", "/short"])
def test_an_answer_that_does_not_end_meets_its_deadline(site: WebServer, ask: Ask, path: str) -> None:
    error = ask(site, path, subject=IMPATIENT, cold=False).read(protocol.Error)
    assert error.message == (
        "no complete answer within 2 s: the clients may wait for each other: use fewer clients"
    )


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (answer(b"", "502 Bad Gateway"), "status 502"),
        (answer(b"", "302 Found", "Location: /login/"), "status 302"),
        (answer(b"", "302 Found", "Location: http://[::1/login/"), "status 302"),  # no URL
        (
            answer(b"", "302 Found", "Location: http://site.\N{BULLET}/").replace(b"\xe2", b"\xe9"),
            "status 302",
        ),
        (answer(PAGE * 3), "a body of another length"),
        (answer(PAGE[: len(PAGE) // 3]), "a body of another length"),
    ],
)
def test_a_failed_request_of_a_slice_is_counted(site: WebServer, ask: Ask, bad: bytes, reason: str) -> None:
    client = ask(site, "/changing", cold=False)
    client.read(protocol.Ready)
    site.changing = bad
    reply, (durations, *_) = client.phased_slice(counted(4))
    assert reply.errors == {reason: 5}
    assert len(durations) == 4
    assert reply.lengths == []
    site.changing = answer()
    reply, _ = client.phased_slice(counted(4, seq=2))
    assert reply.errors == {}


def test_a_length_that_varies_is_a_range(site: WebServer, ask: Ask) -> None:
    client = ask(site, "/changing", cold=False)
    client.read(protocol.Ready)
    site.changing = answer(PAGE + b"x" * 9)
    reply, _ = client.phased_slice(counted(3))
    assert (reply.lengths, reply.errors) == ([len(PAGE) + 9] * 2, {})


def test_a_server_that_is_gone_is_an_error_of_each_request(site: WebServer, ask: Ask) -> None:
    client = ask(site, cold=False)
    client.read(protocol.Ready)
    site.__exit__(None, None, None)
    reply, _ = client.phased_slice(counted(3))
    (reason,) = reply.errors
    assert "no connection" in reason
    assert sum(reply.errors.values()) == 4


# At a given rate


@SCHEDULES
def test_requests_at_a_rate_keep_to_the_schedule(site: WebServer, ask: Ask, kind: str) -> None:
    client = ask(site, cold=False)
    client.read(protocol.Ready)
    before, begin_ns = len(site.requests), time.monotonic_ns()
    request = TWENTY._replace(schedule=kind, seed=7)
    reply, (durations, lags, connects, first_bytes) = at_rate(client, request)
    assert (reply.ops, reply.skipped, reply.backlog, reply.rows) == (20, 0, 0, None)
    assert (reply.errors, reply.lengths) == ({}, [len(PAGE), len(PAGE)])
    assert reply.phases == [protocol.LAG, *protocol.HTTP_PHASES]
    assert list(connects) == [0] * 20
    parts = zip(lags, first_bytes, durations, strict=True)
    assert all(0 < first < whole - lag for lag, first, whole in parts)
    assert begin_ns <= reply.first_ns
    last_ns = reply.first_ns + due_in(request, 20)[-1]
    assert last_ns + durations[-1] <= time.monotonic_ns()
    assert len(site.requests) - before == 20


def test_at_a_rate_each_connection_is_a_phase(site: WebServer, ask: Ask) -> None:
    client = ask(site, connection_mode="per_operation", cold=False)
    client.read(protocol.Ready)
    _reply, (durations, *parts) = at_rate(client, TWENTY._replace(count=5, rate=50.0))
    assert all(parts[1])
    assert all(sum(own) < duration for *own, duration in zip(*parts, durations, strict=True))


def test_at_a_rate_a_connection_that_was_lost_while_idle_is_opened_by_the_first_request(
    site: WebServer, ask: Ask
) -> None:
    """There is no lead-in to open it in: the lead-in of a window is on the schedule."""
    client = ask(site, cold=False)
    client.read(protocol.Ready)
    site.drop_all()
    reply, (_durations, _lags, connects, _) = at_rate(client, TWENTY._replace(count=3))
    assert [each > 0 for each in connects] == [True, False, False]
    assert reply.errors == {}


def test_a_window_of_requests_holds_what_is_due_in_it(site: WebServer, ask: Ask) -> None:
    client = ask(site, cold=False)
    client.read(protocol.Ready)
    start = time.monotonic_ns() + 60 * MS
    request = TWENTY._replace(start_ns=start, lead_in_ns=10 * MS, window_ns=20 * MS, count=0)
    reply, (durations, *_) = at_rate(client, request)
    assert time.monotonic_ns() >= start + 30 * MS
    assert (reply.first_ns, len(durations) + reply.backlog) == (start, 30)
    late, _ = at_rate(client, request._replace(start_ns=1))
    assert (late.ops, late.skipped, late.backlog, late.lengths) == (0, 0, 30, [])


def test_requests_beyond_the_limit_are_not_made(site: WebServer, ask: Ask) -> None:
    client = ask(site, cold=False)
    client.read(protocol.Ready)
    before = len(site.requests)
    reply, rows = at_rate(client, TWENTY._replace(start_ns=1, latency_limit_ns=MS))
    assert (reply.ops, reply.skipped, reply.errors) == (0, 20, {})
    durations, lags, *phases = rows
    assert all(lag > MS for lag in lags)
    assert set(durations) == {*phases[0], *phases[1]} == {0}
    assert len(site.requests) == before


def test_a_request_that_meets_its_deadline_is_counted_and_those_behind_it_are_skipped(
    site: WebServer, ask: Ask
) -> None:
    """It takes 2 s, and one is due every 125 ms: the next ten would begin later than 500 ms."""
    client = ask(site, "/changing", subject=IMPATIENT, cold=False)
    client.read(protocol.Ready)
    site.changing = answer(announced=len(PAGE) + 1)
    request = TWENTY._replace(count=11, rate=8.0, latency_limit_ns=500 * MS)
    reply, (durations, lags, connects, first_bytes) = at_rate(client, request)
    assert (reply.ops, reply.skipped) == (1, 10)
    assert reply.errors == {"no complete answer within 2 s": 1}
    assert [each > 0 for each in durations] == [True] + [False] * 10
    assert durations[0] - lags[0] >= 2000 * MS
    assert set(connects) == set(first_bytes) == {0}


@pytest.mark.parametrize(
    ("bad", "reason"),
    [(answer(b"", "502 Bad Gateway"), "status 502"), (answer(PAGE * 3), "a body of another length")],
)
def test_a_failed_request_at_a_rate_is_counted(site: WebServer, ask: Ask, bad: bytes, reason: str) -> None:
    client = ask(site, "/changing", cold=False)
    client.read(protocol.Ready)
    site.changing = bad
    reply, (durations, *_) = at_rate(client, TWENTY)
    assert (reply.ops, reply.errors, reply.lengths) == (20, {reason: 20}, [])
    assert all(durations)
    site.changing = answer()
    reply, _ = at_rate(client, TWENTY._replace(seq=2))
    assert (reply.ops, reply.errors) == (20, {})


# TLS


@pytest.mark.parametrize("folder", ["certificates", "Schlüssel"])
def test_a_certificate_that_fits_the_name_is_accepted(tmp_path: Path, ask: Ask, folder: str) -> None:
    files = certificate(tmp_path / folder, NAME)
    with WebServer(files) as site:
        client = ask(site, url=f"https://{NAME}:{site.port}", sslrootcert=files[0], cold=False)
        client.read(protocol.Ready)
        reply, (_durations, connects, _) = client.phased_slice(counted(2))
        assert (reply.errors, list(connects)) == ({}, [0, 0])


@pytest.mark.parametrize(
    ("name", "trusted"), [("other.example", True), (NAME, False)], ids=["another-name", "not-named"]
)
def test_a_certificate_that_does_not_fit_is_refused(
    tmp_path: Path, ask: Ask, name: str, trusted: bool
) -> None:
    files = certificate(tmp_path, name)
    known = files[0] if trusted else certificate(tmp_path / "other", NAME)[0]
    with WebServer(files) as site:
        client = ask(site, url=f"https://{NAME}:{site.port}", sslrootcert=known, cold=False)
        assert "certificate does not fit" in client.read(protocol.Error).message
        assert site.requests == []


def test_tls_with_a_server_that_speaks_none_is_explained(site: WebServer, ask: Ask, tmp_path: Path) -> None:
    files = certificate(tmp_path, NAME)
    client = ask(site, url=f"https://{NAME}:{site.port}", sslrootcert=files[0], cold=False)
    assert "does it speak TLS" in client.read(protocol.Error).message


def test_no_cookie_reaches_a_message(site: WebServer, ask: Ask) -> None:
    client = ask(site, "/redirect", cookie="sessionid=s3cret-of-a-session", cold=False)
    error = client.read(protocol.Error)
    assert "Cookie: sessionid=s3cret-of-a-session" in site.requests[0]
    assert "s3cret" not in error.message + client.last_words()


def test_no_part_of_a_cookie_is_left_where_a_long_redirect_is_cut(site: WebServer, ask: Ask) -> None:
    """Its path is cut too, at the second slash."""
    error = ask(site, "/far", cookie="sessionid=s3cret/of-a-session", cold=False).read(protocol.Error)
    assert "--<session>" in error.message
    assert "s3c" not in error.message


def certificate(directory: Path, name: str) -> tuple[str, str]:
    """A certificate that signs itself, and its key: the paths of both."""
    directory.mkdir(exist_ok=True)
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    names = x509.SubjectAlternativeName([x509.DNSName(name), x509.IPAddress(IPv4Address("127.0.0.2"))])
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(names, critical=False)
        .sign(key, hashes.SHA256())
    )
    paths = directory / f"{name}.crt", directory / f"{name}.key"
    paths[0].write_bytes(made.public_bytes(Encoding.PEM))
    paths[1].write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return str(paths[0]), str(paths[1])
