"""The faults of load hosts: how each is caused, and what must hold afterwards.

The load hosts are two more workers of the site. The second one reaches the site's database and the
broker through a relay. A relay that is suspended passes nothing on, as a network that is down.
"""

import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from typing import Any

import psutil

from example.stack import web
from example.stack.part import Part
from pgperf.delay.relay import DelayRelay
from pgperf.models import Database, LoadShare, Run, Target
from pgperf.runs import state
from soak import small_runs
from soak.fault_cases import FaultResult
from soak.site import Site, await_true, is_client
from soak.small_runs import await_end, blocks_of, fresh

NAMES = ("a", "b")
#: The host that a fault befalls.
_DOOMED = "b"
#: A run that lost a host must be over by then.
_OVER_WITHIN_S = 60.0
_END_WITHIN_S = 180.0
_BLOCKS, _ROUNDS, _SLICE_MS = 100, 6, 100
_RTT_MS = 0.1
Fault = Callable[["Performer", random.Random], None]


class Performer:
    """Performs cases on one site with two load hosts."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.database = _database(site)
        self.benchmark = small_runs.saved_benchmark(
            "soak-load", layers=["libpq"], routes=["tcp"], clients=[4]
        )
        self._stack = ExitStack()
        self.relays = [self._relay(int(site.env["PGPERF_DB_PORT"])), self._relay(_redis_port(site))]
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
            self._once(kind, draw, result)
        return {**case, "wrong": result.wrong, "took": result.took, "measured": result.measured}

    def ask(self, blocks: int) -> Run:
        return small_runs.ask(
            self.benchmark, self.database, blocks=blocks, rounds=_ROUNDS, slice_ms=_SLICE_MS, load_hosts=[2],
            diagnostic_ms=0,
        )  # fmt: skip

    def _once(self, kind: "Kind", draw: random.Random, result: FaultResult) -> None:
        run = self.ask(_BLOCKS)
        await_true(lambda: bool(blocks_of(run)) or small_runs.is_over(run), _END_WITHIN_S, 0.1)
        result.require(not small_runs.is_over(run), f"the run ended before the fault: {fresh(run).error}")
        time.sleep(draw.uniform(0.0, 3.0))
        begin = time.monotonic()
        with kind.caused(self, draw):
            if kind.survives:
                result.require(
                    not small_runs.is_over(run), f"a short fault ended the run: {fresh(run).error}"
                )
            else:
                await_end(run, _OVER_WITHIN_S)
            result.took.append(time.monotonic() - begin)
        self._judge(kind, run, result)
        self._recover(result)

    def _judge(self, kind: "Kind", run: Run, result: FaultResult) -> None:
        ended = fresh(run)
        if kind.survives:
            state.request_cancel(ended)
            await_end(run, _OVER_WITHIN_S)
            return
        result.require(small_runs.is_over(run), "the run is not over within 60 s")
        named = f"load host {_DOOMED}" in ended.error or not kind.names_host
        result.require(named, f"the host is not named: {ended.error}")

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
        process = self.hosts[_DOOMED].process
        assert process
        return psutil.Process(process.pid)

    def _relay(self, port: int) -> DelayRelay:
        return self._stack.enter_context(DelayRelay("127.0.0.1", port, _RTT_MS))

    def _host(self, name: str) -> Part:
        """A worker of the site; the second one goes through the relays."""
        env = {**os.environ, **self.site.env}
        if name == _DOOMED:
            database, redis = self.relays
            env |= {
                "PGPERF_DB_PORT": str(database.port),
                "PGPERF_REDIS_URL": env["PGPERF_REDIS_URL"].replace(
                    str(_redis_port(self.site)), str(redis.port)
                ),
            }
        one = self.site.part("worker")
        part = web.worker(one.log.parent, env, f"pgperf-load-{name}")
        return replace(part, log=one.log.with_name(f"load-host-{name}.log"))


def _database(site: Site) -> Database:
    """The site's own, by a credential of its own: the address of an alias is another one on a host
    behind a relay, and pgperf sends its password to that address only.
    """
    site.keep_password("load", site.env["PGPERF_DB_PASSWORD"])
    fields = {
        "dbname": site.env["PGPERF_DB_NAME"],
        "user": site.env["PGPERF_DB_USER"],
        "credential": "file:load",
    }
    database, _made = Database.objects.update_or_create(
        name="behind-load", defaults={**fields, "allow_fixtures": True}
    )
    port = int(site.env["PGPERF_DB_PORT"])
    Target.objects.update_or_create(
        database=database, route="tcp", defaults={"host": "127.0.0.1", "port": port, "sslmode": "disable"}
    )
    return database


def _redis_port(site: Site) -> int:
    return int(site.env["PGPERF_REDIS_URL"].rpartition(":")[2].partition("/")[0])


def kill_a_client(on: Performer, draw: random.Random) -> None:
    """A random one of the next block: those of this one may be about to end, and are not missed."""
    before = {each.pid for each in _clients(on)}
    for _ in range(1000):
        with suppress(psutil.NoSuchProcess, IndexError):
            draw.choice([each for each in _clients(on) if each.pid not in before]).kill()
            return
        time.sleep(0.05)


def _clients(on: Performer) -> list[psutil.Process]:
    return [each for each in on.doomed().children(recursive=True) if is_client(each)]


def kill_the_pool_child(on: Performer, draw: random.Random) -> None:
    next(each for each in on.doomed().children() if not is_client(each)).kill()


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
    """A fault: `cause`, for how long it `lasts_s`, whether the run `survives` it, and whether it must
    name the host.
    """

    def __init__(self, cause: Fault, *, survives: bool = False, names_host: bool = True) -> None:
        self._cause, self.survives, self.names_host = cause, survives, names_host

    @contextmanager
    def caused(self, on: Performer, draw: random.Random) -> Iterator[None]:
        self._cause(on, draw)
        yield


class CutOff(Kind):
    """The relays of the host pass nothing on."""

    def __init__(self, lasts_s: float, *, survives: bool) -> None:
        super().__init__(lambda on, draw: None, survives=survives)
        self._lasts_s = lasts_s

    @contextmanager
    def caused(self, on: Performer, draw: random.Random) -> Iterator[None]:
        for relay in on.relays:
            os.kill(relay.pid, signal.SIGSTOP)
        begin = time.monotonic()
        try:
            if self.survives:
                time.sleep(self._lasts_s)
            else:
                yield
                time.sleep(max(0.0, begin + self._lasts_s - time.monotonic()))
        finally:
            for relay in on.relays:
                os.kill(relay.pid, signal.SIGCONT)
        if self.survives:
            time.sleep(5.0)
            yield


KINDS: dict[str, Kind] = {
    "client killed": Kind(kill_a_client),
    "pool child killed": Kind(kill_the_pool_child),
    "load worker killed": Kind(kill_the_worker),
    "cut off for 10 s": CutOff(10.0, survives=True),
    "cut off for 120 s": CutOff(120.0, survives=False),
    "owner killed": Kind(kill_the_owner, names_host=False),
    "Redis restarted": Kind(restart("Redis"), survives=True),
    "PostgreSQL restarted": Kind(restart("postmaster"), names_host=False),
}
