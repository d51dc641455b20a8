"""Diagnostic slices on a real server and a real pooler."""

import os
import signal
import threading
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest

from pgperf.analysis.diagnostics import diagnostics
from pgperf.core import protocol
from pgperf.core.exceptions import ClientFailed, RunCancelled
from pgperf.core.records import Definition, Page, Route, VariantBlock, WorkloadDefinition
from pgperf.runner.client_group import ClientGroup
from pgperf.runner.pace import Pace
from pgperf.runner.plan import make_plan
from pgperf.runner.preflight import estimate
from pgperf.runner.processes.web_processes import WebProcesses
from pgperf.runner.run import RunSettings, execute
from pgperf.runner.server import pg_stat_activity
from pgperf.runner.server.control_connection import ControlConnection
from pgperf.runner.server.diagnostics import (
    DiagnosticConnections,
    DiagnosticResult,
    _DiagnosticSlice,
    ended_ns,
)
from pgperf.runner.server.pg_stat_statements import PgStatStatements
from pgperf.runner.server.pgbouncer_console import PgBouncerConsole
from tests.busy_machine import too_busy
from tests.clients.web_server import WebServer, answer
from tests.core.builders import variant
from tests.runner.builders import definition
from tests.waiting import until

pytestmark = pytest.mark.usefixtures("forked_control_connections")
ONE_ROW = WorkloadDefinition("one-row", "SELECT relname FROM pg_class WHERE oid = %s", (1259,))
TURNS = WorkloadDefinition("turns", "SELECT pg_advisory_xact_lock(4711), pg_sleep(0.004)")


class Watcher:
    """An Observer that remembers, and cancels when the message says what it waits for."""

    def __init__(self, cancel_at: str = "never") -> None:
        self.blocks: list[VariantBlock] = []
        self.said: list[tuple[float, str]] = []
        self._cancel_at = cancel_at

    def block_done(self, blocks: list[VariantBlock]) -> None:
        self.blocks += blocks

    def progress(self, share: float, message: str) -> None:
        self.said.append((share, message))

    def cancelled(self) -> bool:
        return self._cancel_at in self.said[-1][1]


def asked(workload: WorkloadDefinition, *routes: str, **changed: Any) -> Definition:
    values = {
        "workloads": (workload,), "layers": ("psycopg",), "routes": routes, "diagnostic_ms": 200, "cold_blocks": 0,
        "lead_in_ms": 10, "slice_ms": 20, **changed,
    }  # fmt: skip
    return definition(**values)


def run(
    what: Definition, routes: dict[str, Route], watcher: Watcher, build_dir: str = ""
) -> list[dict[str, Any]]:
    """The diagnoses of the variants, in their order, and the seconds that they took."""
    plan = make_plan(what)
    outcome = execute(plan, routes, RunSettings(build_dir, "diagnosed"), watcher)
    assert outcome.timings.diagnostics_s > len(plan.variants) * what.diagnostic_ms / 1000
    found = [diagnostics([each], rows=1) for each in watcher.blocks]
    return [each.to_json() for each in found if each]


def test_layers_and_routes_do_the_same_work(c_client: Path, routes: dict[str, Route]) -> None:
    watcher = Watcher()
    what = asked(ONE_ROW, "socket", "pgbouncer", layers=("libpq", "django_cursor"), blocks=2)
    found = run(what, routes, watcher, str(c_client.parent))
    assert len(found) == len(make_plan(what).variants) == 6
    assert [bool(block.diagnostics) for block in watcher.blocks] == [False] * 6 + [True] * 6
    for block, each in zip(watcher.blocks[6:], found, strict=True):
        same = {"calls_per_op": 1.0, "rows_per_op": 1.0, "as_expected": True}
        assert each["statements"] == same, (block.variant.label, each)
        assert was_seen(each)
        assert (each["wait_events"] or {}).keys() <= {"CPU", "Client", "IO", "LWLock", "IPC"}
        assert (each["pooler"] is not None) == (block.variant.route == "pgbouncer")
        if each["pooler"]:
            assert each["pooler"]["queries"] >= 10
            assert each["pooler"]["queries_per_op"] == 1.0
            assert each["pooler"]["cl_waiting_max"] in (0, None)
        roles = [row["role"] for row in block.top["processes"]]
        assert roles.count("clients") == roles.count("server") == 1
        assert ("pooler" in roles) == (block.variant.route == "pgbouncer")
    assert watcher.said[-1][0] == 1.0
    assert any(
        each.startswith("Block 2 of 2: diagnostic slice 6 of 6 is taken. ") for _, each in watcher.said
    )
    shares = [share for share, _ in watcher.said]
    assert shares == sorted(shares)


@pytest.mark.parametrize(
    ("workers", "own", "end"),
    [
        ({}, [5, 5, 20], 1030),
        ({"worker_ops": [2, 1], "worker_first_ns": [1000, 1005]}, [5, 5, 20], 1010),
        ({"window_ns": 400}, [], 1400),
        ({"window_ns": 400, "worker_ops": [2, 1], "worker_first_ns": [1000, 1005]}, [5, 5, 20], 1400),
    ],
    ids=["one worker", "several workers", "a tool that times nothing", "a tool"],
)
def test_a_slice_ends_with_its_first_worker(workers: dict[str, Any], own: list[int], end: int) -> None:
    timed = {"rows": None, "lead_in_ops": 0, "first_ns": 1000, "user_ns": 0, "sys_ns": 0, "capped": False}
    reply = protocol.SliceReply(seq=1, ops=3, **timed, nbytes=8 * len(own), **workers)
    assert ended_ns(reply, np.array(own, dtype=np.uint64)) == end


def was_seen(found: dict[str, Any]) -> bool:
    """Were its backends seen, unless the machine was too busy to look at anything?"""
    busy = too_busy(found["notes"]) and found["wait_events"] is None
    return busy or (found["samples"] > 0 and not found["notes"])


def test_lock_waits_are_reported(routes: dict[str, Route]) -> None:
    what = asked(TURNS, "tcp", clients=(3,), diagnostic_ms=1000)
    found = run(what, routes, Watcher())[0]
    if too_busy(found["notes"]):
        found = run(what, routes, Watcher())[0]
    assert found["wait_events"]["Lock"] > 0.3  # two of three wait for the one that sleeps
    assert found["events"]["Lock:advisory"] == found["wait_events"]["Lock"]
    assert found["wait_events"]["Timeout"] > 0.1
    assert found["statements"]["as_expected"] is True


def test_a_slow_variant_runs_by_time_in_a_diagnostic_slice(
    routes: dict[str, Route], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pgperf.runner.slice_length.WINDOW_MAX_NS", 1_000_000)
    monkeypatch.setattr("pgperf.runner.slice_length.PILOT_OPS", 1)
    nap = WorkloadDefinition("nap", "SELECT pg_sleep(0.05)")
    found = run(asked(nap, "socket", slice_ms=0), routes, Watcher())[0]
    assert found["statements"]["calls_per_op"] == 1.0
    assert was_seen(found)
    assert found["samples"] == 0 or found["wait_events"]["Timeout"] > 0.5


def test_a_cancel_in_a_diagnostic_slice_keeps_the_timed_slices(routes: dict[str, Route]) -> None:
    watcher = Watcher("diagnostic slice 1")
    with pytest.raises(RunCancelled):
        run(asked(ONE_ROW, "socket", layers=("psycopg", "psycopg2")), routes, watcher)
    assert [len(block.slices) for block in watcher.blocks] == [1] * 4
    assert [bool(block.diagnostics) for block in watcher.blocks].count(True) == 1


def test_a_failure_in_a_diagnostic_slice_keeps_the_timed_slices(
    routes: dict[str, Route], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = DiagnosticConnections.examine

    def cut_off(self: DiagnosticConnections, group: Any, *rest: Any) -> Any:
        os.kill(group.clients[0].pid, signal.SIGKILL)
        return real(self, group, *rest)

    monkeypatch.setattr(DiagnosticConnections, "examine", cut_off)
    watcher = Watcher()
    with pytest.raises(ClientFailed, match="SIGKILL"):
        run(asked(ONE_ROW, "socket"), routes, watcher)
    assert [len(block.slices) for block in watcher.blocks] == [1, 1]
    assert not any(block.diagnostics for block in watcher.blocks)


@pytest.mark.parametrize(
    ("first", "again", "time", "kept"),
    [
        ((0.0, 0.09), (), True, (0, 1)),
        ((1.0, 0.0), (0.2,), True, (2, 1)),
        ((0.3, 1.0), (0.5, 0.0), True, (0, 3)),
        ((1.0, 1.0), (), False, (0, 1)),
    ],
    ids=["undisturbed", "one", "a worse and a better repeat", "no time"],
)
def test_a_disturbed_slice_is_repeated_once_and_the_less_disturbed_one_counts(
    routes: dict[str, Route],
    monkeypatch: pytest.MonkeyPatch,
    first: tuple[float, ...],
    again: tuple[float, ...],
    time: bool,
    kept: tuple[int, ...],
) -> None:
    """`first`, `again`: the CPUs that others took in the slices; `kept`: which of them count."""
    examine, taken = DiagnosticConnections.examine, iter((*first, *again))
    results: list[tuple[str, DiagnosticResult]] = []

    def disturbed(self: DiagnosticConnections, group: ClientGroup, *rest: Any) -> DiagnosticResult:
        found = replace(examine(self, group, *rest), taken_cpus=next(taken))
        found.top["processes"] = [{"role": "other", "name": f"rival {len(results)}"}]
        results.append((group.variant.label, found))
        return found

    monkeypatch.setattr(DiagnosticConnections, "examine", disturbed)
    monkeypatch.setattr(Pace, "has_time_to_repeat", lambda *_: time)
    watcher = Watcher()
    run(asked(ONE_ROW, "socket", diagnostic_ms=50), routes, watcher)
    shown = {block.variant.label: (block.diagnostics, block.top) for block in watcher.blocks if block.top}
    assert shown == {
        label: (found.diagnostics, found.top | _replaced(label, results[:index]))
        for index, (label, found) in ((index, results[index]) for index in kept)
    }
    assert len(results) == len(first) + len(again)
    assert sum("is repeated" in text for _, text in watcher.said) == len(again)


def _replaced(label: str, before: list[tuple[str, DiagnosticResult]]) -> dict[str, Any]:
    """What a variant's slice keeps of the disturbed one before it: the programs that disturbed it."""
    return next(({"disturbed_by": found.top["processes"]} for name, found in before if name == label), {})


class FailingSite(Watcher):
    """Lets a site fail in so many diagnostic slices, which follow a timed round."""

    def __init__(self, site: WebServer, times: int) -> None:
        super().__init__()
        self._site, self._times = site, times

    def progress(self, share: float, message: str) -> None:
        super().progress(share, message)
        taken = sum("diagnostic slice" in text for _, text in self.said)
        begun = any("round 1" in text for _, text in self.said)
        fails = begun and taken < self._times
        self._site.changing = answer(b"", "502 Bad Gateway") if fails else answer()


@pytest.mark.parametrize(("times", "failed"), [(2, False), (4, True)])
def test_a_slice_with_a_failed_request_is_repeated(
    routes: dict[str, Route], monkeypatch: pytest.MonkeyPatch, times: int, failed: bool
) -> None:
    """Those of the page and its control; where the repetitions fail too, the note says so."""
    pytest.importorskip("pycurl")
    monkeypatch.setattr(Pace, "has_time_to_repeat", lambda *_: True)
    monkeypatch.setattr(DiagnosticResult, "is_disturbed", False)
    page = WorkloadDefinition("page", "", page=Page("/changing"))
    what = asked(page, "web", layers=("http",), web_routes={"web": ""}, diagnostic_ms=50)
    with WebServer() as site:
        watcher = FailingSite(site, times)
        web = Route("web", "127.0.0.1", site.port, "", "", "", url=f"http://site.example:{site.port}")
        execute(make_plan(what), {"web": web, "tcp": routes["tcp"]}, RunSettings("", "t"), watcher)
    assert sum("is repeated" in text for _, text in watcher.said) == 2
    assert len(watcher.blocks) == 2
    for block in watcher.blocks:
        assert not any(piece.errors for piece in block.slices)
        assert ("a request failed" in block.diagnostics["notes"]["wait_events"]) is failed


def test_no_diagnostic_slice_without_a_length(routes: dict[str, Route]) -> None:
    watcher = Watcher()
    outcome = execute(
        make_plan(asked(ONE_ROW, "socket", diagnostic_ms=0)), routes, RunSettings("", "t"), watcher
    )
    assert outcome.timings.diagnostics_s == 0
    assert not any(block.diagnostics or block.top for block in watcher.blocks)
    assert [share for share, _text in watcher.said] == [0.0, 1.0]
    assert "diagnostic" not in watcher.said[-1][1]


def test_the_fake_layer_has_no_server_diagnostics() -> None:
    watcher = Watcher()
    nowhere = {"here": Route("here", "localhost", 1, "none", "nobody", "")}
    execute(make_plan(definition(diagnostic_ms=100)), nowhere, RunSettings("", "t"), watcher)
    assert not any(block.diagnostics for block in watcher.blocks)
    assert [share for share, _text in watcher.said] == [0.0, 1.0]
    assert "diagnostic" not in watcher.said[-1][1]


def test_the_estimate_includes_diagnostic_slices() -> None:
    without, with_it = (estimate(make_plan(asked(ONE_ROW, "a", diagnostic_ms=ms))) for ms in (0, 3000))
    assert 6 < with_it.seconds - without.seconds < 7  # the variant and its control
    assert with_it.connections == without.connections + 2


def test_a_database_without_the_extension(routes: dict[str, Route]) -> None:
    there = {"tcp": replace(routes["tcp"], dbname="postgres")}
    (found, _control) = run(asked(ONE_ROW, "tcp"), there, Watcher())
    assert found["statements"] is None
    assert "CREATE EXTENSION pg_stat_statements" in found["notes"]["statements"]
    assert found["samples"] > 0 or "too busy" in found["notes"]["wait_events"]


def test_statements_are_counted_in_the_slice_only(
    routes: dict[str, Route], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Single statements and the parts of a page are timed afterwards, in the same sessions."""
    examine, settings = DiagnosticConnections.examine, []

    def then_asked(*words: Any) -> DiagnosticResult:
        found = examine(*words)
        (client,) = words[1].clients
        client.send(protocol.Query(_COUNTING))
        settings.append(client.expect(protocol.Rows, 15).rows)
        return found

    monkeypatch.setattr(DiagnosticConnections, "examine", then_asked)
    found = run(asked(ONE_ROW, "tcp"), routes, Watcher())
    assert all(each["statements"] for each in found)
    assert settings[:2] == [[["none", "off"]]] * 2


_COUNTING = "SELECT current_setting('pg_stat_statements.track'), current_setting('compute_query_id')"


def test_a_server_that_always_counts(routes: dict[str, Route]) -> None:
    """What pgperf itself asks is not in the counts; the C client's and the monitors' sessions begin
    with it on.
    """
    parameters = {"pg_stat_statements.track": "top", "compute_query_id": "on"}
    with ControlConnection(routes["socket"], "pgperf-t-owner") as monitor:
        for name, value in parameters.items():
            monitor.query(f"ALTER ROLE CURRENT_USER SET {name} = '{value}'")
        try:
            found = run(asked(ONE_ROW, "socket"), routes, Watcher())[0]
        finally:
            for name in parameters:
                monitor.query(f"ALTER ROLE CURRENT_USER RESET {name}")
    assert found["statements"] in (
        {"calls_per_op": 1.0, "rows_per_op": 1.0, "as_expected": True},
        {**found["statements"], "as_expected": None},  # another test's session of this login
    )


@pytest.fixture
def lent(stack: dict[str, str]) -> Route:
    """A route by transaction."""
    parts = dict(part.split("=", 1) for part in stack["PGPERF_DSN_PGBOUNCER_TRANSACTION"].split())
    login = {name: parts[name] for name in ("host", "dbname", "user", "password")}
    return Route("lent", port=int(parts["port"]), pooler="transaction", **login)


def test_behind_a_transaction_pooler(lent: Route, routes: dict[str, Route]) -> None:
    """A backend is known by the name that PgBouncer passes on; statements of one variant cannot be
    counted.
    """
    both = {"lent": lent, "tcp": routes["tcp"]}
    found = run(asked(ONE_ROW, "lent", "tcp", clients=(2,)), both, Watcher())[0]
    assert found["samples"] > 0 or "too busy" in found["notes"]["wait_events"]
    assert 1.0 <= found["pooler"]["queries_per_op"] < 1.5  # it passes the name on by a statement of its own
    assert found["pooler"]["pool_mode"] in ("transaction", None)
    assert found["statements"] is None
    assert "behind a transaction pooler" in found["notes"]["statements"]


def test_sessions_are_not_polled_through_the_measured_pool(lent: Route) -> None:
    found = run(asked(ONE_ROW, "lent", clients=(2,)), {"lent": lent}, Watcher())[0]
    assert found["wait_events"] is None
    assert "add a direct route" in found["notes"]["wait_events"]
    assert found["pooler"]["queries"] > 0


def test_a_login_that_may_not_have_its_statements_counted(
    routes: dict[str, Route], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pgperf.runner.server.pg_stat_statements.switch_on", lambda clients, version: False)
    (found, _control) = run(asked(ONE_ROW, "tcp"), routes, Watcher())
    assert found["statements"] is None
    assert (
        'GRANT SET ON PARAMETER pg_stat_statements.track, compute_query_id TO "pgperf"'
        in found["notes"]["statements"]
    )


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"workers": 3}, "not for those of several workers"),
        (
            {"layers": ("asyncpg",), "modes": ("extended",), "connection_modes": ("pool",)},
            "resets its sessions",
        ),
    ],
)
def test_sessions_in_which_counting_cannot_be_switched_on(
    routes: dict[str, Route], changed: dict[str, Any], reason: str
) -> None:
    """The layers did the same work: less that was counted would say that they had not."""
    (found, _control) = run(asked(ONE_ROW, "tcp", **changed), routes, Watcher())
    assert found["statements"] is None
    assert reason in found["notes"]["statements"]
    assert "GRANT" not in found["notes"]["statements"]


def test_a_console_that_refuses_the_login(routes: dict[str, Route]) -> None:
    """It is queried once. The other sources still answer."""
    refused = replace(routes["pgbouncer"], user="somebody-else")
    with DiagnosticConnections({"socket": routes["socket"], "pgbouncer": refused}, "pgperf-t") as instruments:
        for _ in range(2):
            assert instruments.ask("pooler", lambda: instruments.console(refused).totals()) is None
        assert list(instruments.notes) == ["pooler"]
        assert "somebody-else" not in instruments.notes["pooler"]
        assert refused.password not in instruments.notes["pooler"]
        assert instruments.ask("activity", lambda: instruments.monitor("activity").query("SELECT 1")) == [
            ["1"]
        ]


def test_a_failed_source_is_not_queried_again(routes: dict[str, Route]) -> None:
    with DiagnosticConnections(routes, "pgperf-t") as instruments:
        assert (
            instruments.ask("activity", lambda: instruments.monitor("activity").query("SELECT 1/0")) is None
        )
        assert "division by zero" in instruments.notes["activity"]
        assert instruments.ask("activity", lambda: pytest.fail("asked again")) is None
        assert instruments.statements().track == "none"
        assert instruments.ask("pooler", lambda: {"another pooler": 1}["total_query_count"]) is None
        assert instruments.notes["pooler"] == "pooler: this version of pgperf does not know its answer"


def test_what_pgperf_itself_asks_disturbs_no_slice(routes: dict[str, Route]) -> None:
    """Neither the clients of its queries nor their backends are other programs."""
    with DiagnosticConnections(routes, "pgperf-t") as instruments:
        backend = int(instruments.activity().query("SELECT pg_backend_pid()")[0][0] or 0)
        instruments.console(routes["pgbouncer"]).pool()
        group = ClientGroup(variant(), "pgperf-t-0")
        own = set(_DiagnosticSlice(instruments, group, routes["tcp"])._roles()["runner"])
    clients = own - {os.getpid(), backend, 0}
    assert (os.getpid() in own, backend in own, len(clients)) == (True, True, 2)


@pytest.mark.parametrize(("seen", "taken"), [(True, 0.9), (False, 0.0)])
def test_clients_that_are_not_told_from_others_disturb_no_slice(seen: bool, taken: float) -> None:
    """Those of a load host on this machine: every slice of theirs would be repeated."""
    group = ClientGroup(variant(hosts=1), "pgperf-t-0", clients_seen=seen)
    route = Route("tcp", "127.0.0.1", 5432, "app", "app", "")
    found = _DiagnosticSlice(DiagnosticConnections({}, "pgperf-t"), group, route)
    busy = {"role": "other", "pid": -1, "cpu_percent": 90.0}
    assert found._taken_cpus({"processes": [busy], "host": {"st": 0.0}}) == taken


def test_polls_report_the_states_of_backends(routes: dict[str, Route]) -> None:
    own = routes["tcp"]
    with (
        psycopg.connect(**keywords(own), application_name="pgperf-seen", autocommit=True) as sleeper,
        psycopg.connect(**keywords(own), application_name="pgperf-seen.1") as idle,
        ControlConnection(own, "pgperf-looks") as monitor,
    ):
        idle.execute("SELECT 1")
        thread = threading.Thread(target=_until_cancelled, args=(sleeper,))
        thread.start()
        try:
            until(lambda: ("active", "Timeout", "PgSleep") in poll(monitor), 30, "it sleeps")
            found = poll(monitor)
            assert found == Counter(
                {("active", "Timeout", "PgSleep"): 4, ("idle in transaction", "Client", "ClientRead"): 4}
            )
            assert pg_stat_activity.poll(monitor, pg_stat_activity.named(["pgperf-seen.7"]), 5) == Counter()
        finally:
            sleeper.cancel()
            thread.join()


def keywords(route: Route) -> dict[str, Any]:
    return {name: getattr(route, name) for name in ("host", "port", "dbname", "user", "password")}


def poll(monitor: ControlConnection) -> Counter[pg_stat_activity.SessionState]:
    return states(monitor, pg_stat_activity.named(["pgperf-seen", "pgperf-seen.1"]))


def states(monitor: ControlConnection, backends: str) -> Counter[pg_stat_activity.SessionState]:
    return pg_stat_activity.poll(monitor, backends, 4 * pg_stat_activity.SAMPLE_MS)


def test_the_backends_of_web_servers_are_found_by_their_numbers_or_their_start(
    routes: dict[str, Route],
) -> None:
    """They have the names that the site gives them."""
    own = routes["tcp"]
    idle = ("idle", "Client", "ClientRead")
    with (
        ControlConnection(own, "pgperf-looks") as monitor,
        psycopg.connect(**keywords(own), application_name="site", autocommit=True) as kept,
    ):
        kept.execute("SELECT 1")
        later = pg_stat_activity.begun_after(monitor)
        with (
            psycopg.connect(**keywords(own), application_name="site", autocommit=True) as new,
            psycopg.connect(**keywords(own), application_name="pgperf-own", autocommit=True) as ours,
        ):
            new.execute("SELECT 1")
            ours.execute("SELECT 1")
            assert states(monitor, later) == Counter({idle: 4})
            assert states(monitor, pg_stat_activity.numbered([kept.info.backend_pid])) == Counter({idle: 4})
            both = [kept.info.backend_pid, new.info.backend_pid]
            assert states(monitor, pg_stat_activity.numbered(both)) == Counter({idle: 8})


@pytest.mark.parametrize(
    ("pids", "web", "condition"),
    [
        ([11, 12], [7], "a.pid IN (11, 12)"),
        ([], [7], "a.backend_start >="),
        ([], None, "a.pid IN (0)"),
    ],
    ids=["kept connections", "a connection for each request", "another machine"],
)
def test_whose_states_are_sampled_behind_a_web_server(
    routes: dict[str, Route], pids: list[int], web: list[int] | None, condition: str
) -> None:
    there = WebProcesses(proxy=[], web=web)
    group = ClientGroup(variant(layer="http", route="web"), "pgperf-t-0", server_pids=pids, web=there)
    route = Route("web", "127.0.0.1", 8000, "", "", "", url="http://127.0.0.1:8000")
    with DiagnosticConnections(routes, "pgperf-t") as instruments:
        assert condition in _DiagnosticSlice(instruments, group, route)._condition()


def _until_cancelled(connection: "psycopg.Connection[Any]") -> None:
    with pytest.raises(psycopg.errors.QueryCanceled):
        connection.execute("SELECT pg_sleep(60)")


def test_the_console_counts_and_shows_the_pool(routes: dict[str, Route]) -> None:
    own = routes["pgbouncer"]
    with (
        psycopg.connect(**keywords(own), autocommit=True) as client,
        PgBouncerConsole(own, "pgperf-console") as console,
    ):
        client.execute("SELECT 1")
        before = console.totals()
        for _ in range(7):
            client.execute("SELECT 1")
        after = console.totals()
        assert after["query_count"] - before["query_count"] >= 7
        assert {"xact_count", "query_time", "wait_time"} <= after.keys()
        pool = console.pool()
        assert pool["pool_mode"] == "session"
        assert int(pool["cl_active"]) >= 1
    with PgBouncerConsole(replace(own, dbname="elsewhere"), "pgperf-console") as console:
        assert (console.totals(), console.pool()) == ({}, {})


def test_statements_are_those_of_one_login(routes: dict[str, Route]) -> None:
    with ControlConnection(routes["socket"], "pgperf-t-statements") as monitor:
        found = PgStatStatements.find(monitor)
        assert isinstance(found, PgStatStatements)
        assert found.top_level
        first = found.count(monitor, "it's nobody", "pgperf-t")
        assert (first.calls, first.rows, first.others) == (0, 0, 0)
