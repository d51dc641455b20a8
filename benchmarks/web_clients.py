"""Clients of the layer http for scripts, on a CPU of their own, with the web servers on the others."""

import os
import socket
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import psutil

from example.stack.part import Part
from pgperf.core import protocol
from pgperf.core.records import Definition, Page, Route, WorkloadDefinition
from pgperf.db.web_urls import WebUrl
from pgperf.runner.client_group import ClientGroup
from pgperf.runner.client_startup import started
from pgperf.runner.cpu import placement, schedstat
from pgperf.runner.cpu.placement import CpuPlacement
from pgperf.runner.plan import make_plan

LAYER = "http"
LEAD_IN_NS = 500_000_000


def processors() -> tuple[int, list[int]]:
    """The clients' CPU, and those of all servers."""
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        raise SystemExit(
            "verdict: cannot measure: the generator needs a CPU of its own, this machine has one"
        )
    return cpus[-1], cpus[:-1]


def place(parts: Iterable[Part], cpus: Sequence[int]) -> None:
    """Keep these processes off the clients' CPU; their children inherit that."""
    for part in parts:
        assert part.process
        _place(part.process.pid, frozenset(cpus))


def _place(pid: int, cpus: frozenset[int]) -> None:
    """A process, then its children: those that it starts meanwhile have its CPUs already. One that has
    ended needs none.
    """
    if not placement.pin(pid, cpus) and psutil.pid_exists(pid):
        raise SystemExit(f"verdict: cannot measure: the system does not allow to pin process {pid}")
    for child in schedstat.children(pid):
        _place(child, cpus)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@contextmanager
def connected(
    url: str, path: str, connection_mode: str, connections: int, cpu: int, authority: str = ""
) -> Iterator[ClientGroup]:
    """The clients of one variant, warm. `authority`: the file of certificates to verify TLS by."""
    address = WebUrl.parse(url)
    ca_file = authority if address.is_encrypted else ""
    route = Route("web", address.host, address.port, "", "", "", sslrootcert=ca_file, url=str(address))
    definition = Definition(
        "web_clients", (WorkloadDefinition("page", "", page=Page(path)),), (LAYER,), ("web",), clients=(connections,),
        connection_modes=(connection_mode,), web_routes={"web": ""},
    )  # fmt: skip
    variant = next(variant for variant in make_plan(definition).variants if not variant.control)
    named = [(variant, "web_clients")]
    placed = CpuPlacement("", clients=frozenset({cpu}))
    with started(definition, named, {"web": route}, "", cold=False, placed=placed) as (group,):
        group.run(protocol.Slice(seq=0, lead_in_ops=1, lead_in_ns=LEAD_IN_NS, count=1))
        yield group
