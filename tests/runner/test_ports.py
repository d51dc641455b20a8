"""The ports that reconnecting clients use up: predicted, and used up in a network namespace."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgperf.core.exceptions import PreflightRefused
from pgperf.core.records import Plan, Route, Variant
from pgperf.runner import ports, run_time
from pgperf.runner.authentication import LoginConditions
from pgperf.runner.plan import make_plan
from pgperf.runner.ports import LocalPorts
from tests.runner.builders import definition

USUAL = LocalPorts(ports=28_232, time_wait=100, tw_reuse=2, timestamps=True)
TRUST = LoginConditions("none (trust, peer or certificate)", None, "none")
SCRAM = LoginConditions("scram-sha-256", 4096, "none")
TCP = Route("tcp", "127.0.0.1", 5432, "app", "app", "secret")
FAR = replace(TCP, host="db.example", pooler="session")


def plan(connect: str = "per_operation", clients: int = 20, **changes: Any) -> Plan:
    """Two variants that take turns, for two minutes."""
    made = make_plan(
        definition(
            **{
                "routes": ("tcp",),
                "clients": (clients,),
                "blocks": 10,
                "rounds": 24,
                "slice_ms": 250,
                **changes,
            }
        )
    )
    return replace(
        made, cohorts=tuple(replace(each, variants=_all(each.variants, connect)) for each in made.cohorts)
    )


def _all(variants: tuple[Variant, ...], connect: str) -> tuple[Variant, ...]:
    return tuple(replace(variant, connect=connect) for variant in variants)


def predicted(route: Route, login: LoginConditions, local: LocalPorts = USUAL, **changes: Any) -> int:
    (need,) = ports.needs(plan(**changes), {"tcp": route}, {"tcp": login}, local)
    return need.predicted


def test_a_fast_pooler_on_another_host_uses_up_the_ports() -> None:
    with pytest.raises(PreflightRefused) as caught:
        ports.check(plan(), {"tcp": FAR}, {"tcp": TRUST}, USUAL)
    text = str(caught.value)
    for number in (
        "db.example:5432",
        "28,132 are free",
        "28,232 less 100 in TIME_WAIT",
        "for 60 s",
        "tcp_tw_reuse 2",
    ):
        assert number in text
    assert "Unix socket" in text


@pytest.mark.parametrize(
    ("changes", "reused"),
    [({}, True), ({"tw_reuse": 1}, True), ({"tw_reuse": 0}, False), ({"timestamps": False}, False)],
)
def test_ports_of_loopback_may_be_reused_after_a_second(changes: dict[str, Any], reused: bool) -> None:
    local = replace(USUAL, **changes)
    assert (
        local.hold_s("127.0.0.1") == local.hold_s("localhost") == local.hold_s("::1") == (1 if reused else 60)
    )
    assert local.hold_s("db.example") == (1 if changes.get("tw_reuse") == 1 else 60)
    assert predicted(replace(FAR, host="127.0.0.1"), TRUST, local) == (10_000 if reused else 600_000)


def test_a_login_by_password_is_slower() -> None:
    """Each of the two variants works for half of the 60 s."""
    assert predicted(FAR, TRUST, clients=1) == 60 * 10_000
    assert predicted(replace(FAR, pooler=""), TRUST, clients=2) == round(60 * 2 / 0.0015)
    assert predicted(replace(FAR, pooler=""), TRUST, clients=20) == 60 * 3_000
    assert predicted(FAR, SCRAM, clients=1) == 60 * 200
    assert predicted(FAR, SCRAM, clients=64) == 60 * 200 * len(os.sched_getaffinity(0))


def test_a_load_host_needs_the_ports_of_its_part() -> None:
    """Its clients have a quarter of what the pooler can start; the owner has none of them."""
    made = plan(load_hosts=(4,))
    parts = dict.fromkeys(made.variants, 5)
    where = {"tcp": FAR}, {"tcp": TRUST}, USUAL
    assert {variant.hosts for variant in made.variants} == {4}
    assert ports.needs(made, *where) == []
    (need,) = ports.needs(made, *where, parts)
    assert need.predicted == predicted(FAR, TRUST) / 4
    with pytest.raises(
        PreflightRefused, match=r"connections to db\.example:5432 would keep up to 150,000 ports"
    ):
        ports.check(made, *where, parts)


def test_long_slices_have_the_ports_for_themselves() -> None:
    """Within the second in which a port is kept, one variant works."""
    near = replace(FAR, host="127.0.0.1")
    assert predicted(near, TRUST, slice_ms=5_000) == predicted(near, TRUST, slice_ms=250) == 10_000


def test_slices_that_a_pilot_will_choose_count_with_their_predicted_length() -> None:
    """20 clients need a second and more for their operations, not the 50 ms of a fast query."""
    once = {"slice_ms": 0, "blocks": 1, "rounds": 1}
    made = plan(**once)
    lengths = run_time.predicted_slice_s(made.definition, made.cohorts[0])
    assert min(lengths.values()) > 0.5
    assert predicted(FAR, TRUST, **once) == round(10_000 * sum(lengths.values()))


def test_a_time_budget_takes_the_place_of_the_number_of_blocks() -> None:
    short = {"blocks": 1, "rounds": 1}
    assert predicted(FAR, TRUST, **short) < predicted(FAR, TRUST)
    assert predicted(FAR, TRUST, **short, budget_s=600) == predicted(FAR, TRUST)


@pytest.mark.parametrize("connect", ["persistent", "pool"])
def test_connections_that_stay_need_no_ports(connect: str) -> None:
    assert ports.check(plan(connect), {"tcp": FAR}, {"tcp": TRUST}, USUAL) == {}


def test_a_unix_socket_has_no_ports() -> None:
    assert ports.check(plan(), {"tcp": replace(TCP, host="/run/postgresql")}, {}, USUAL) == {}


def test_a_system_that_does_not_tell_refuses_nothing() -> None:
    assert ports.check(plan(), {"tcp": FAR}, {"tcp": TRUST}, None) == {}


def test_the_environment_has_the_numbers_and_a_note_where_it_gets_tight() -> None:
    roomy = ports.check(plan(), {"tcp": replace(FAR, host="127.0.0.1")}, {"tcp": TRUST}, USUAL)
    assert (roomy["predicted"], roomy["ports"], roomy["time_wait"], roomy["hold_s"]) == (
        10_000,
        28_232,
        100,
        1.0,
    )
    assert "note" not in roomy
    tight = replace(USUAL, time_wait=USUAL.ports - 12_000)
    found = ports.check(plan(), {"tcp": replace(FAR, host="127.0.0.1")}, {"tcp": TRUST}, tight)
    assert "12,000 are free" in found["note"]


@given(st.integers(1, 70_000), st.integers(0, 70_000), st.integers(1, 64))
def test_a_run_is_refused_iff_it_needs_more_than_is_free(count: int, waiting: int, clients: int) -> None:
    local = LocalPorts(count, waiting, 0, True)
    need = predicted(TCP, SCRAM, local, clients=clients)
    try:
        ports.check(plan(clients=clients), {"tcp": TCP}, {"tcp": SCRAM}, local)
        refused = False
    except PreflightRefused:
        refused = True
    assert refused == (need > max(0, count - waiting))


def test_what_the_system_does_not_have_is_unknown(tmp_path: Path) -> None:
    assert LocalPorts.read(tmp_path) is None
    assert LocalPorts.read() is not None


FIFTY_PORTS = """
import errno, json, os, socket, subprocess, sys, threading
from contextlib import closing, suppress
from pathlib import Path
from pgperf.core.exceptions import ClientFailed, PreflightRefused
from pgperf.core.protocol import Ready, Slice, SliceReply
from pgperf.core.records import Definition, Route, WorkloadDefinition
from pgperf.runner import client_spec, ports
from pgperf.runner.client_process import ClientProcess
from pgperf.runner.plan import make_plan
from pgperf.runner.ports import LocalPorts

subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
settings = Path("/proc/sys/net/ipv4")
(settings / "ip_local_port_range").write_text("40000 40049")
(settings / "tcp_tw_reuse").write_text("0")
"""
IN_NAMESPACE = f"""{FIFTY_PORTS}
server = socket.create_server(("127.0.0.1", 5432))
before, made = LocalPorts.read(), 0
try:
    while made < 1000:
        with socket.create_connection(server.getsockname()) as client:
            accepted, _ = server.accept()
            client.shutdown(socket.SHUT_RDWR)
            accepted.recv(1)
            accepted.close()
            client.recv(1)
        made += 1
    problem = 0
except OSError as error:
    problem = error.errno
after = LocalPorts.read()
print(json.dumps([before.ports, before.time_wait, before.free, before.hold_s("127.0.0.1"), made,
                  problem == errno.EADDRNOTAVAIL, after.time_wait, after.free]))
"""


#: PostgreSQL's socket is reached from every namespace: something in this one listens for it at a port.
#: The client closes each connection first, so it keeps the port.
RECONNECTING = f"""{FIFTY_PORTS}
def copy(source, sink):
    with suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)

def serve(client):
    with closing(client), closing(socket.socket(socket.AF_UNIX)) as postgresql:
        postgresql.connect(os.environ["POSTGRESQL"])
        threading.Thread(target=copy, args=(postgresql, client), daemon=True).start()
        copy(client, postgresql)

def accept(listener):
    while True:
        threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()

listener = socket.create_server(("127.0.0.1", 0))
threading.Thread(target=accept, args=(listener,), daemon=True).start()
route = Route("tcp", *listener.getsockname(), *json.loads(os.environ["LOGIN"]), sslmode="disable")
work = WorkloadDefinition("one", "SELECT 1")
what = Definition("ports", (work,), ("psycopg",), ("tcp",), connection_modes=("per_operation",))
plan, said = make_plan(what), []
try:
    ports.check(plan, {{"tcp": route}}, {{}}, LocalPorts.read())
except PreflightRefused as error:
    said.append(str(error))
argv = [sys.executable, "-m", "pgperf.clients.programs.psycopg_client"]
with ClientProcess("psycopg", argv, route.password) as client:
    client.send(client_spec.spec(what, plan.variants[0], route, "ports", False, client.spawned_ns))
    client.expect(Ready, 60)
    client.send(Slice(seq=1, lead_in_ops=0, lead_in_ns=0, count=1000))
    try:
        client.expect(SliceReply, 60)
    except ClientFailed as error:
        said.append(str(error))
print(json.dumps(said))
"""


def in_namespace(program: str, **environment: str) -> Any:
    """What a program prints in a network namespace with 50 ports, which only root may make."""
    if not shutil.which("unshare") or not shutil.which("ip"):
        pytest.skip("unshare or ip is missing")
    done = subprocess.run(
        ["unshare", "--net", sys.executable, "-c", program],
        capture_output=True, text=True, check=False, env={**os.environ, **environment},
    )  # fmt: skip
    if "Operation not permitted" in done.stderr:
        pytest.skip(f"no network namespace can be made here: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_run_that_needs_more_is_refused_and_a_client_that_runs_out_says_so(
    routes: dict[str, Route],
) -> None:
    server = routes["socket"]
    refused, failed = in_namespace(
        RECONNECTING,
        POSTGRESQL=f"{server.host}/.s.PGSQL.{server.port}",
        LOGIN=json.dumps([server.dbname, server.user, server.password]),
    )
    assert refused.startswith("ports: connections to 127.0.0.1:")
    assert "are free (50 less " in refused
    assert "psycopg: no local port is free: closed connections wait in TIME_WAIT; choose fewer" in failed
    assert "connecting for an operation, connection mode per_operation" in failed


def test_the_numbers_are_those_at_which_a_kernel_runs_out() -> None:
    total, waiting, free, hold_s, made, ran_out, waiting_then, free_then = in_namespace(IN_NAMESPACE)
    assert (total, waiting, free, hold_s) == (50, 0, 50, 60.0)
    assert (made, ran_out) == (50, True), "as many connections as ports"
    assert (waiting_then, free_then) == (50, 0)
