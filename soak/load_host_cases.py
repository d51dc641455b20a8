"""The faults of load hosts: how each is caused, and what must hold afterwards.

The load hosts are two more workers of the site. The second one has a network of its own, where this
machine can make one (soak.cut_network).
"""

import os
import random
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import replace
from typing import Any

import psutil

from example.stack import web
from example.stack.network_hosts import Host, refusal
from example.stack.part import Part
from pgperf.core.exceptions import RunConflict
from pgperf.models import Database, LoadShare, Run, Target
from pgperf.runs import state
from soak import cut_network, small_runs
from soak.fault_cases import FaultResult
from soak.site import NotReached, Site, await_true, is_client
from soak.small_runs import await_end, blocks_of, fresh

NAMES = ("a", "b")
#: The host that a fault befalls.
_DOOMED = "b"
#: A run that lost a host must be over by then.
_OVER_WITHIN_S = 60.0
#: A cancelled one must be over on all hosts by then.
_CANCELLED_WITHIN_S = 15.0
_END_WITHIN_S = 180.0
_BLOCKS, _ROUNDS, _SLICE_MS = 100, 6, 100
_LOOPBACK = "127.0.0.1"
Fault = Callable[["Performer", random.Random], None]


class Performer:
    """Performs cases on one site with two load hosts."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self._stack = ExitStack()
        self.network: Host | None = None
        self.address = _LOOPBACK  # of the site's servers, from both hosts
        if not refusal():
            self.network, self.address = self._stack.enter_context(cut_network.joined(site))
        self.database = self._database("behind-load", int(site.env["PGPERF_DB_PORT"]))
        self._standby: Database | None = None
        self.benchmark = small_runs.saved_benchmark(
            "soak-load", layers=["libpq"], routes=["tcp"], clients=[4]
        )
        self.hosts = {name: self._host(name) for name in NAMES}
        for part in self.hosts.values():
            part.start()
            self._stack.callback(part.stop)

    def perform(self, case: dict[str, Any]) -> dict[str, Any]:
        draw = random.Random(f"{case['seed']}/{case['kind']}")
        kind = KINDS[case["kind"]]
        lasted = "how long the fault lasted, which the run survived"
        result = FaultResult(lasted if kind.survives else "from the fault to the end of the run")
        for _ in range(case["count"]):
            with _noted(result):
                self._once(kind, draw, result)
        return {**case, "wrong": result.wrong, "took": result.took, "measured": result.measured}

    def ask(self, blocks: int, database: Database | None = None) -> Run:
        return small_runs.ask(
            self.benchmark, database or self.database, blocks=blocks, rounds=_ROUNDS, slice_ms=_SLICE_MS,
            load_hosts=[2], diagnostic_ms=0,
        )  # fmt: skip

    def standby(self) -> Database:
        """Another server than the site's own, with a copy of its tables."""
        if self._standby is None:
            first = self.ask(1)  # makes what the workload reads
            await_end(first, _END_WITHIN_S)
            port = self._stack.enter_context(self.site.standby())
            self._standby = self._database("behind-standby", port)
        return self._standby

    def _once(self, kind: "Kind", draw: random.Random, result: FaultResult) -> None:
        run = self.ask(_BLOCKS, kind.database(self))
        with _noted(result):
            self._befall(kind, run, draw, result)
        with _noted(result):
            cancel(run)
        self._recover(result)

    def _befall(self, kind: "Kind", run: Run, draw: random.Random, result: FaultResult) -> None:
        """The fault, and what must hold of the run afterwards."""
        await_true(lambda: bool(blocks_of(run)) or small_runs.is_over(run), _END_WITHIN_S, 0.1)
        result.require(not small_runs.is_over(run), f"the run ended before the fault: {fresh(run).error}")
        time.sleep(draw.uniform(0.0, 3.0))
        begin = time.monotonic()
        with kind.caused(self, run, draw):
            if kind.survives:
                result.require(
                    not small_runs.is_over(run), f"a short fault ended the run: {fresh(run).error}"
                )
            else:
                over_s = await_true(lambda: kind.is_over(self, run), kind.within_s, 0.2)
                result.require(over_s >= 0, f"the run is not over within {kind.within_s:g} s")
            result.took.append(time.monotonic() - begin)
        if not kind.survives:
            self._judge(kind, fresh(run), result)

    def _judge(self, kind: "Kind", ended: Run, result: FaultResult) -> None:
        named = f"load host {_DOOMED}" in ended.error or not kind.names_host
        result.require(named, f"the host is not named: {ended.error}")
        expected = kind.status or ended.status
        result.require(ended.status == expected, f"it is {ended.status}, not {expected}: {ended.error}")

    def _recover(self, result: FaultResult) -> None:
        """Nothing is left, and the next run on both hosts is done."""
        orphans, backends = small_runs.leftovers(self.site)
        result.require(not orphans and not backends, f"left over: {orphans} clients, {backends} backends")
        for part in self.hosts.values():
            if part.has_ended():
                part.start()
        for name in ("postmaster", "Redis", "worker"):
            self.site.restart(name)
        await_true(lambda: small_runs.query(state.live_load_hosts) == list(NAMES), _END_WITHIN_S, 0.2)
        following = self.ask(1)
        await_end(following, _END_WITHIN_S)
        ended = fresh(following)
        result.require(ended.status == Run.Status.DONE, f"the next run is not done: {ended.error}")
        result.require(not small_runs.query(LoadShare.objects.exists), "a share is left")

    def doomed(self) -> psutil.Process:
        """The worker, which in a network of its own is the child of the program that entered it."""
        process = self.hosts[_DOOMED].process
        assert process
        found = psutil.Process(process.pid)
        if not self.network:
            return found
        return _first(found.children(), "worker behind the program that entered its network")

    def _host(self, name: str) -> Part:
        """A worker of the site."""
        env, network = {**os.environ, **self.site.env}, self.network if name == _DOOMED else None
        if network:
            redis = env["PGPERF_REDIS_URL"].replace(_LOOPBACK, self.address)
            env |= {"PGPERF_DB_HOST": self.address, "PGPERF_REDIS_URL": redis}
        one = self.site.part("worker")
        part = web.worker(one.log.parent, env, f"pgperf-load-{name}")
        argv = network.inside(*part.argv, cwd=web.CHECKOUT) if network else part.argv
        return replace(part, argv=argv, log=one.log.with_name(f"load-host-{name}.log"))

    def _database(self, name: str, port: int) -> Database:
        """By a credential of its own: the address of an alias is another one on a host with another
        network, and pgperf sends its password to that address only.
        """
        env = self.site.env
        self.site.keep_password("load", env["PGPERF_DB_PASSWORD"])
        fields = {"dbname": env["PGPERF_DB_NAME"], "user": env["PGPERF_DB_USER"], "credential": "file:load"}
        database, _made = Database.objects.update_or_create(
            name=name, defaults={**fields, "allow_fixtures": True}
        )
        address = {"host": self.address, "port": port, "sslmode": "disable"}
        Target.objects.update_or_create(database=database, route="tcp", defaults=address)
        return database


@contextmanager
def _noted(result: FaultResult) -> Iterator[None]:
    """What fails counts against this case alone: the lane has others to perform."""
    try:
        yield
    except Exception as error:
        result.wrong.append(f"{type(error).__name__}: {error}")


def cancel(run: Run) -> None:
    """End the run, if it has not ended by itself."""
    with suppress(RunConflict):
        small_runs.query(lambda: state.request_cancel(fresh(run)))
    await_end(run, _OVER_WITHIN_S)


def _first(found: Sequence[psutil.Process], what: str) -> psutil.Process:
    if not found:
        raise NotReached(f"the load host has no {what}")
    return found[0]


def kill_a_client(on: Performer, draw: random.Random) -> None:
    """A random one of the next block: those of this one may be about to end, and are not missed."""
    before = {each.pid for each in _clients(on)}
    for _ in range(1000):
        with suppress(psutil.NoSuchProcess, IndexError):
            draw.choice([each for each in _clients(on) if each.pid not in before]).kill()
            return
        time.sleep(0.05)
    raise NotReached("the load host has no client of a next block")


def _clients(on: Performer) -> list[psutil.Process]:
    return [each for each in on.doomed().children(recursive=True) if is_client(each)]


def kill_the_pool_child(on: Performer, draw: random.Random) -> None:
    _first([each for each in on.doomed().children() if not is_client(each)], "pool child").kill()


def kill_the_worker(on: Performer, draw: random.Random) -> None:
    on.doomed().send_signal(signal.SIGKILL)


def kill_the_owner(on: Performer, draw: random.Random) -> None:
    on.site.kill("worker")


def restart(name: str) -> Fault:
    def fault(on: Performer, draw: random.Random) -> None:
        on.site.kill(name)
        time.sleep(draw.uniform(0.5, 3.0))
        on.site.restart(name)
        time.sleep(5.0)

    return fault


class Kind:
    """A fault: `cause`; whether the run `survives` it; else whether it must name the host, and in
    which `status` it must be over, within `within_s` (None: in any).
    """

    within_s: float = _OVER_WITHIN_S
    status: str | None = None

    def __init__(self, cause: Fault, *, survives: bool = False, names_host: bool = True) -> None:
        self._cause, self.survives, self.names_host = cause, survives, names_host

    @contextmanager
    def caused(self, on: Performer, run: Run, draw: random.Random) -> Iterator[None]:
        self._cause(on, draw)
        yield

    def database(self, on: Performer) -> Database:
        """What the run measures."""
        return on.database

    def is_over(self, on: Performer, run: Run) -> bool:
        return small_runs.is_over(run)


class NetworkCut(Kind):
    """The network of the host is down."""

    def __init__(self, lasts_s: float, *, survives: bool) -> None:
        super().__init__(lambda on, draw: None, survives=survives)
        self._lasts_s = lasts_s

    @contextmanager
    def caused(self, on: Performer, run: Run, draw: random.Random) -> Iterator[None]:
        begin = time.monotonic()
        with self._cut(on):
            if self.survives:
                time.sleep(self._lasts_s)
            else:
                yield
                time.sleep(max(0.0, begin + self._lasts_s - time.monotonic()))
        if self.survives:
            time.sleep(5.0)
            yield

    def _cut(self, on: Performer) -> AbstractContextManager[None]:
        return cut_network.cut(on.network) if on.network else nullcontext()


class OtherServer(Kind):
    """The run measures another server than the site's own, which alone has the fault."""

    def database(self, on: Performer) -> Database:
        return on.standby()


class Cancelled(Kind):
    """A user cancels the run: it is over when no client is left on any host."""

    within_s, status = _CANCELLED_WITHIN_S, str(Run.Status.CANCELLED)

    def __init__(self) -> None:
        super().__init__(lambda on, draw: None, names_host=False)

    @contextmanager
    def caused(self, on: Performer, run: Run, draw: random.Random) -> Iterator[None]:
        small_runs.query(lambda: state.request_cancel(fresh(run)))
        yield

    def is_over(self, on: Performer, run: Run) -> bool:
        return small_runs.is_over(run) and not on.site.clients()


KINDS: dict[str, Kind] = {
    "client killed": Kind(kill_a_client),
    "pool child killed": Kind(kill_the_pool_child),
    "load worker killed": Kind(kill_the_worker),
    "network cut for 10 s": NetworkCut(10.0, survives=True),
    "network cut for 120 s": NetworkCut(120.0, survives=False),
    "owner killed": Kind(kill_the_owner, names_host=False),
    "Redis restarted": Kind(restart("Redis"), survives=True),
    "PostgreSQL restarted": Kind(restart("postmaster"), names_host=False),
    "site's database restarted alone": OtherServer(restart("postmaster"), survives=True),
    "cancelled": Cancelled(),
}
