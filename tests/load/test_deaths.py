"""A load host dies in the middle of a run: the run names it, and nothing is left of its clients."""

import os
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import psutil
import pytest
from django.db import connection, connections

from example.stack.part import Part
from pgperf.core import protocol
from pgperf.core.exceptions import FenceLost
from pgperf.load.controller import LoadHostController
from pgperf.models import Database, LoadShare, Run
from pgperf.runs import state, store
from pgperf.worker import execution
from tests.load.conftest import ask
from tests.process_ends import argv
from tests.waiting import until

pytestmark = pytest.mark.django_db(transaction=True)


def clients(part: Part) -> list[psutil.Process]:
    """The client processes of a load host's worker."""
    assert part.process
    with suppress(psutil.NoSuchProcess):
        children = psutil.Process(part.process.pid).children(recursive=True)
        return [each for each in children if argv(each).endswith("pgperf-libpq")]
    return []


def backends(run: Run) -> list[Any]:
    """The sessions of a run's clients."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pid, application_name FROM pg_stat_activity WHERE application_name ~ %s",
            [f"^pgperf-{run.session_key}-[0-9]"],
        )
        return list(cursor.fetchall())


@contextmanager
def meanwhile(act: Callable[[], object]) -> Iterator[None]:
    """Something happens to the load hosts while this process performs the run."""
    errors: list[BaseException] = []

    def guarded() -> None:
        try:
            act()
        except BaseException as error:
            errors.append(error)
        finally:
            connections.close_all()

    thread = threading.Thread(target=guarded)
    thread.start()
    try:
        yield
    finally:
        thread.join()
    assert not errors, errors


def perform_and(run: Run, act: Callable[[], object]) -> tuple[Run, float]:
    """The run, to which that happens after its first block; and how long it went on after it."""
    happened: list[float] = []

    def then() -> None:
        until(lambda: store.load_blocks(run), 120, "a finished block")
        act()
        happened.append(time.monotonic())

    with meanwhile(then):
        ended = execution.perform(run.pk, "owner@here")
        over = time.monotonic()
    return ended, over - happened[0]


class AfterADiagnosticSlice:
    """Does something once, in the run's own thread, before the second one is ordered."""

    def __init__(self, act: Callable[[], object]) -> None:
        self.act: Callable[[], object] | None = act

    def progress(self, _share: float, message: str) -> None:
        if self.act and "diagnostic slice 1 of" in message:
            act, self.act = self.act, None
            act()


def nothing_is_left(run: Run, load_hosts: dict[str, Part]) -> None:
    until(lambda: not any(map(clients, load_hosts.values())), 15, "no client is left")
    until(lambda: not backends(run), 15, "no session is left")
    assert not LoadShare.objects.exists()


def pool_child(part: Part) -> psutil.Process:
    """The process that has the clients."""
    found: list[psutil.Process] = []

    def seen() -> list[psutil.Process]:
        assert part.process
        with suppress(psutil.NoSuchProcess):
            found.extend(each for each in psutil.Process(part.process.pid).children() if each.children())
        return found

    until(seen, 30, "a client")
    return found[0]


def kill_a_client(part: Part) -> None:
    """One of the next block: those of this one may be about to end, and are not missed then."""
    before = {each.pid for each in clients(part)}

    def killed() -> bool:
        fresh = [each for each in clients(part) if each.pid not in before]
        with suppress(psutil.NoSuchProcess, IndexError):
            fresh[0].kill()
            return True
        return False

    until(killed, 60, "a client is killed")


def kill_a_working_client(part: Part) -> None:
    """Within a slice: it has used CPU time since its host was ordered to run slices."""
    until(
        lambda: any("slices" in (row.order or ()) for row in LoadShare.objects.all()),
        120,
        "an order of slices",
    )
    before = {each.pid: _cpu_s(each) for each in clients(part)}

    def killed() -> bool:
        for each in clients(part):
            if _cpu_s(each) - before.get(each.pid, 0.0) > 0.1:
                with suppress(psutil.NoSuchProcess):
                    each.kill()
                    return True
        return False

    until(killed, 120, "a working client is killed")


def _cpu_s(process: psutil.Process) -> float:
    """0 if it has ended."""
    with suppress(psutil.NoSuchProcess):
        return sum(process.cpu_times()[:2])
    return 0.0


@pytest.mark.parametrize("victim", ["client", "pool child", "worker"])
def test_the_run_names_a_load_host_that_was_killed(
    load_hosts: dict[str, Part], database: Database, victim: str
) -> None:
    doomed = load_hosts["b"]

    def kill() -> None:
        if victim == "client":
            kill_a_client(doomed)
        elif victim == "pool child":
            pool_child(doomed).kill()
        else:
            assert doomed.process
            doomed.process.send_signal(signal.SIGKILL)

    run, seconds = perform_and(ask(database, blocks=100, rounds=8), kill)
    assert run.status == Run.Status.FAILED
    assert "load host b: " in run.error
    assert seconds < 60
    nothing_is_left(run, load_hosts)

    if victim == "worker":
        doomed.start()
    until(lambda: state.live_load_hosts() == ["a", "b"], 30, "both hosts are there again")
    following = execution.perform(ask(database, blocks=1, rounds=1).pk, "owner@here")
    assert (following.status, following.error) == (Run.Status.DONE, "")


def test_a_run_that_may_lose_hosts_goes_on_with_the_others(
    load_hosts: dict[str, Part], database: Database
) -> None:
    run, _seconds = perform_and(
        ask(database, may_lose_hosts=True, blocks=3), lambda: pool_child(load_hosts["b"]).kill()
    )
    assert (run.status, run.error) == (Run.Status.DONE, "")
    facts = run.environment["load_hosts"]
    assert list(facts["hosts"]) == ["a"]
    # Its main process tells it at once, unless a busy machine is silent for too long before.
    assert re.match(r"load host b: .*(gone|no sign of life)", facts["lost"]["b"])
    assert len({block.block for block in store.load_blocks(run)}) == 3
    assert all(block.slices for block in store.load_blocks(run))
    nothing_is_left(run, load_hosts)


def test_a_host_that_is_left_may_be_in_the_middle_of_a_slice(
    load_hosts: dict[str, Part], database: Database
) -> None:
    """The lost clients' sessions are ended; those of the others must not be ended under them."""
    asked = ask(database, may_lose_hosts=True, blocks=1, rounds=1, slice_ms=3000)
    with meanwhile(lambda: kill_a_working_client(load_hosts["b"])):
        run = execution.perform(asked.pk, "owner@here")
    assert (run.status, run.error) == (Run.Status.DONE, "")
    assert list(run.environment["load_hosts"]["lost"]) == ["b"]
    nothing_is_left(run, load_hosts)


def test_a_block_whose_diagnostics_lost_a_host_is_measured_again(
    load_hosts: dict[str, Part], database: Database
) -> None:
    """As a whole: its slices and its diagnostic slices are of the same hosts."""
    asked = ask(database, may_lose_hosts=True, blocks=1, diagnostic_ms=100)
    kill = AfterADiagnosticSlice(lambda: pool_child(load_hosts["b"]).kill())
    run = execution.perform(asked.pk, "owner@here", kill)
    assert (run.status, run.error) == (Run.Status.DONE, "")
    for block in store.load_blocks(run):
        assert [host["name"] for host in block.cpu_account["load_hosts"]] == ["a"]
        assert block.diagnostics
    nothing_is_left(run, load_hosts)


def test_a_diagnostic_slice_that_a_host_got_too_late_is_taken_again(
    load_hosts: dict[str, Part], database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The host stands still until after the start that it was ordered, and is not dead."""
    found: list[psutil.Process] = []
    resumed: list[threading.Timer] = []

    def order(controller: LoadHostController, slices: Sequence[tuple[int, protocol.Slice]]) -> None:
        if not found or resumed:
            return ordered(controller, slices)
        found[0].suspend()
        ordered(controller, slices)
        after_s = slices[-1][1].start_ns / 1e9 - time.monotonic()
        resumed.append(threading.Timer(max(0.0, after_s) + 0.5, found[0].resume))
        return resumed[0].start()

    ordered = LoadHostController.order
    monkeypatch.setattr(LoadHostController, "order", order)
    asked = ask(database, blocks=1, diagnostic_ms=100)
    next_one = AfterADiagnosticSlice(lambda: found.append(pool_child(load_hosts["b"])))
    run = execution.perform(asked.pk, "owner@here", next_one)
    resumed[0].join()
    assert (run.status, run.error) == (Run.Status.DONE, "")
    assert run.environment["load_hosts"]["repeated"]
    assert all(block.diagnostics for block in store.load_blocks(run))


def test_a_cancel_reaches_all_hosts(load_hosts: dict[str, Part], database: Database) -> None:
    """Long before the run would end. tests/load/test_cancel.py adds up what it takes at most."""
    run = ask(database, blocks=100)
    ended, seconds = perform_and(run, lambda: state.request_cancel(Run.objects.get(pk=run.pk)))
    assert ended.status == Run.Status.CANCELLED
    assert seconds < 60
    nothing_is_left(run, load_hosts)


def test_a_suspended_host_takes_no_part_until_the_next_run(
    load_hosts: dict[str, Part], database: Database
) -> None:
    """When it continues, its row is gone: it ends its clients and waits for the next message."""
    stopped: list[psutil.Process] = []

    def suspend() -> None:
        stopped.append(pool_child(load_hosts["b"]))
        os.kill(stopped[0].pid, signal.SIGSTOP)

    run, seconds = perform_and(ask(database, blocks=100), suspend)
    assert "load host b: no sign of life" in run.error
    assert seconds < 60
    until(lambda: not backends(run), 15, "no session is left")
    os.kill(stopped[0].pid, signal.SIGCONT)
    nothing_is_left(run, load_hosts)
    following = execution.perform(ask(database, blocks=1, rounds=1).pk, "owner@here")
    assert (following.status, following.error) == (Run.Status.DONE, "")


def test_the_owner_dies_and_its_hosts_end_their_clients(
    load_hosts: dict[str, Part], database: Database
) -> None:
    """Its heartbeat stops, as a killed owner's does."""
    run = ask(database, blocks=100)

    def abandon() -> None:
        until(lambda: all(map(clients, load_hosts.values())), 30, "clients on both hosts")
        Run.objects.filter(pk=run.pk).update(attempt=7)

    with pytest.raises(FenceLost):
        perform_and(run, abandon)
    until(lambda: not any(map(clients, load_hosts.values())), 40, "no client is left")
