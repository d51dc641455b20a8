"""The engine end to end with the layer http against a small web server."""

import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from pgperf.analysis import page_lengths
from pgperf.analysis.http_requests import HttpRequests, http_requests
from pgperf.analysis.summary import summarise
from pgperf.core.exceptions import ClientFailed, InvalidDefinition
from pgperf.core.protocol import Slice
from pgperf.core.records import Definition, Page, Route, Variant, VariantBlock, WorkloadDefinition
from pgperf.runner.plan import make_plan
from pgperf.runner.progress import Progress
from pgperf.runner.run import RunSettings, execute
from pgperf.runner.warm_up import warm_up
from tests.clients.web_server import PAGE, WebServer, answer
from tests.runner.builders import definition
from tests.runner.test_run import Watcher

pytest.importorskip("pycurl")

MACHINE = RunSettings(build_dir="", run_id="test")


@pytest.fixture
def site() -> Iterator[WebServer]:
    with WebServer() as server:
        yield server


def pages(**changes: object) -> Definition:
    work = WorkloadDefinition("page", "", page=Page("/changing"))
    given = {
        "workloads": (work,),
        "layers": ("http",),
        "routes": ("web",),
        "web_routes": {"web": ""},
        "rounds": 3,
    }
    return definition(**{**given, **changes})


def routes(*sites: WebServer) -> dict[str, Route]:
    names = ["web", "proxy"]
    return {
        name: Route(name, "127.0.0.1", site.port, "", "", "", url=f"http://site.example:{site.port}")
        for name, site in zip(names, sites, strict=False)
    }


def test_requests_are_measured_with_their_phases(site: WebServer) -> None:
    watcher = Watcher()
    execute(
        make_plan(pages(connection_modes=("persistent", "per_operation"))), routes(site), MACHINE, watcher
    )
    kept, anew = (
        next(b for b in watcher.blocks if b.variant.connect == c) for c in ("persistent", "per_operation")
    )
    assert list(kept.phases) == ["connect", "first_byte", "receive"]
    assert kept.http["lengths"] == [len(PAGE), len(PAGE)]
    assert (kept.http["errors"], kept.rows_per_op) == ({}, None)
    for piece in kept.slices:
        assert piece.new_connections == 0
        assert piece.connect_ns == 0
        assert piece.first_byte_ns
        assert piece.receive_ns
    for piece in anew.slices:
        assert piece.new_connections == piece.ops
        assert piece.connect_ns


def test_requests_at_a_rate_are_measured_with_their_phases(site: WebServer) -> None:
    watcher = Watcher()
    what = pages(
        connection_modes=("persistent", "per_operation"), rates=(100.0,), schedule="constant", rounds=1
    )
    execute(make_plan(what), routes(site), MACHINE, watcher)
    kept, anew = (
        next(b for b in watcher.blocks if b.variant.connect == c) for c in ("persistent", "per_operation")
    )
    assert list(kept.phases) == ["lag", "service", "connect", "first_byte", "receive"]
    for block in (kept, anew):
        (piece,) = block.slices
        assert (piece.due, piece.skipped, piece.errors) == (100, 0, 0)
        assert piece.lag_ns
        parts = (piece.connect_ns or 0) + (piece.first_byte_ns or 0) + (piece.receive_ns or 0)
        assert parts == piece.service_ns
    assert (kept.slices[0].connect_ns, anew.slices[0].new_connections) == (0, anew.phases["lag"].ops)


def test_the_restart_of_web_servers_is_a_step_of_its_own(
    site: WebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is no part of the start of the clients, by which later starts are predicted."""
    took: list[tuple[str, float]] = []
    ended = Progress.ended

    def note(self: Progress, cohort: int, part: str) -> None:
        took.append((part, time.monotonic()))
        ended(self, cohort, part)

    monkeypatch.setattr(Progress, "ended", note)
    waiting = replace(MACHINE, before_block=lambda _block, _routes: time.sleep(0.2))
    execute(make_plan(pages(restart_s=1.0)), routes(site), waiting, Watcher())
    assert [part for part, _at in took][:3] == ["restart", "cold_start", "warm_up"]
    took.clear()
    execute(make_plan(pages()), routes(site), waiting, Watcher())
    assert [part for part, _at in took][:2] == ["cold_start", "warm_up"]


@dataclass
class Noted:
    """Notes what a warm-up asks of a group of clients."""

    variant: Variant
    said: list[str]
    op_s: float = 0.01
    owner: None = None

    def begin(self, request: Slice) -> None:
        self.said.append(f"{self.variant.route} begins")

    def calibrate(self, request: Slice) -> None:
        self.said.append(f"{self.variant.route} ends")

    collect = calibrate


def test_the_clients_of_one_web_server_at_a_time_warm_up() -> None:
    """20 clients of each of 14 servers on one CPU would wait for seconds, up to their deadline."""
    what = pages(
        layers=("http", "fake"), routes=("web", "proxy", "here", "there"), web_routes={"web": "", "proxy": ""}
    )
    said: list[str] = []
    variants = [variant for variant in make_plan(what).variants if not variant.control]
    warm_up(what, [Noted(variant, said) for variant in variants])  # type: ignore[misc]
    databases = ["here begins", "there begins", "here ends", "there ends"]
    servers = [[f"{route} begins", f"{route} ends"] for route in ("web", "proxy")]
    assert said == [*databases * 2, *servers[0] * 2, *servers[1] * 2]


def test_several_clients_share_a_window(site: WebServer) -> None:
    watcher = Watcher()
    execute(make_plan(pages(clients=(3,), slice_ms=50, lead_in_ms=20)), routes(site), MACHINE, watcher)
    block = watcher.blocks[0]
    assert block.variant.processes == 3
    assert {piece.new_connections for piece in block.slices} == {0}
    assert not any(piece.errors for piece in block.slices)


def test_a_layer_runs_on_the_routes_of_its_kind_only() -> None:
    plan = make_plan(pages(layers=("http", "fake"), routes=("here", "web")))
    assert {(each.layer, each.route) for each in plan.variants} == {("fake", "here"), ("http", "web")}
    with pytest.raises(InvalidDefinition, match="add a target that has one"):
        make_plan(pages(routes=("here",), web_routes={}))


def test_a_page_that_fails_at_once_ends_the_run_with_the_reason(site: WebServer) -> None:
    site.changing = answer(b"", "302 Found", "Location: /login/")
    with pytest.raises(
        ClientFailed, match=r"http · web: status 302: a redirect to http://site\.example:\d+/login/"
    ):
        execute(make_plan(pages()), routes(site), MACHINE, Watcher())


class Failing(Watcher):
    """Lets the site fail in the second round."""

    def __init__(self, site: WebServer) -> None:
        super().__init__()
        self._site = site

    def progress(self, share: float, message: str) -> None:
        super().progress(share, message)
        self._site.changing = answer(b"", "502 Bad Gateway") if len(self.shares) == 1 else answer()


def summary(what: Definition, blocks: list[VariantBlock]) -> dict[str, dict[str, object]]:
    found = summarise(what, make_plan(what).variants, blocks, "psycopg")
    return {row["label"]: row for row in found["variants"]}


def test_a_round_with_an_error_counts_for_no_figure(site: WebServer) -> None:
    watcher, what = Failing(site), pages()
    execute(make_plan(what), routes(site), MACHINE, watcher)
    block = next(each for each in watcher.blocks if not each.variant.control)
    good = [piece for piece in block.slices if not piece.errors]
    assert len(good) == 2
    assert sum(block.http["errors"].values()) == next(piece.errors for piece in block.slices if piece.errors)
    row = summary(what, watcher.blocks)["http · web"]
    assert (row["slices"], row["ops"]) == (2, sum(piece.ops for piece in good))
    assert row["errors"] == block.http["errors"]["status 502"]
    assert block.latency_sum_ns == sum(
        piece.connect_ns + piece.first_byte_ns + piece.receive_ns for piece in good
    )


def test_a_login_form_with_status_200_is_told_by_its_length(site: WebServer) -> None:
    """No request fails: the first answer of each client is as long as all others."""
    with WebServer() as locked:
        locked.changing = answer(b"<form>Log in</form>")
        watcher, what = Watcher(), pages(routes=("web", "proxy"), web_routes={"web": "", "proxy": "web"})
        execute(make_plan(what), routes(site, locked), MACHINE, watcher)
    blocks = [block for block in watcher.blocks if not block.variant.control]
    assert not any(block.http["errors"] for block in blocks)
    requests = {block.variant: found for block in blocks if (found := http_requests([block]))}
    (found,) = page_lengths.others(requests, {})
    assert (found.variant.route, found.lengths.most) == ("proxy", len(b"<form>Log in</form>"))
    view = page_lengths.Lengths.of_view(f"200, {len(PAGE):,} bytes")
    assert view
    assert [each.variant.route for each in page_lengths.others(requests, {"page": view})] == ["proxy"]


def test_a_variant_with_more_errors_than_one_in_a_thousand_has_no_outcome(site: WebServer) -> None:
    what = pages()
    watcher = Watcher()
    execute(make_plan(what), routes(site), MACHINE, watcher)
    failing = [
        replace(block, http={**block.http, "requests": 1000, "errors": {"status 502": errors}})
        for block, errors in zip(watcher.blocks, (1, 2), strict=True)
    ]
    found = summarise(what, make_plan(what).variants, failing, "psycopg")
    assert found["comparisons"] == []
    sound = [
        replace(block, http={**block.http, "requests": 1000, "errors": {"status 502": 1}})
        for block in failing
    ]
    assert len(summarise(what, make_plan(what).variants, sound, "psycopg")["comparisons"]) == 1


@pytest.fixture
def elsewhere() -> Iterator[int]:
    """The port of a web server in a process of its own."""
    argv = [sys.executable, "-m", "tests.clients.web_server"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout
        yield int(server.stdout.readline())
        server.communicate()


def test_the_cpu_time_of_the_web_server_is_a_role(elsewhere: int) -> None:
    port = elsewhere
    watcher, what = Watcher(), pages(slice_ms=60)
    way = {"web": Route("web", "127.0.0.1", port, "", "", "", url=f"http://127.0.0.1:{port}")}
    execute(make_plan(what), way, MACHINE, watcher)
    for block in watcher.blocks:
        assert all(piece.web_ns and piece.proxy_ns == 0 for piece in block.slices)
        assert block.cpu_account["web_workers"] == 1
    found = summary(what, watcher.blocks)["http · web"]
    assert found["cpu_us_per_op"]["web"] > 0
    assert found["cpu_us_per_op"]["proxy"] == 0


def test_figures_of_requests_are_stored_and_read() -> None:
    found = HttpRequests(1000, {"status 502": 1}, kept=0.5, least_bytes=10, most_bytes=12)
    assert HttpRequests.from_json(found.to_json()) == found
    assert found.has_outcome
    assert not replace(found, requests=999).has_outcome
    assert HttpRequests.from_json({}) is None


@pytest.fixture
def dying_server() -> Iterator[int]:
    """The port of gunicorn with one worker, which dies under load again and again."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = int(listener.getsockname()[1])
        words = f"--bind=fd://{listener.fileno()} --workers=1 --no-control-socket --log-level=critical"
        command = [str(Path(sys.executable).with_name("gunicorn")), "tests.runner.dying_page", *words.split()]
        with subprocess.Popen(command, pass_fds=[listener.fileno()]) as server:
            yield port
            server.terminate()


def test_a_worker_that_dies_under_load_is_errors_of_requests(dying_server: int) -> None:
    """The run goes on with the next worker, and the variant has no outcome."""
    watcher, what = Watcher(), pages(cold_blocks=0)
    route = Route("web", "127.0.0.1", dying_server, "", "", "", url=f"http://127.0.0.1:{dying_server}")
    execute(make_plan(what), {"web": route}, MACHINE, watcher)
    failed: Counter[str] = Counter()
    for block in watcher.blocks:
        failed.update(block.http["errors"])
    found = summarise(what, make_plan(what).variants, watcher.blocks, "psycopg")
    assert [piece for block in watcher.blocks for piece in block.slices]
    assert failed
    assert all("connection" in reason for reason in failed)
    assert found["comparisons"] == []
