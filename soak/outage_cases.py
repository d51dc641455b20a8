"""Outages of the machine around a run: suspended processes, a full disk, a standby, control groups.

Most need root: they mount a small file system or write a control group's limits.
"""

import math
import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import psutil
from django.db import connection

from example.stack.postgres import READER, ROLE
from pgperf.models import Database, Run, Target
from soak import fault_cases, small_runs
from soak.fault_cases import FaultResult
from soak.site import Site, await_state, await_true
from soak.small_runs import await_end, blocks_of, fresh

SUSPENDED_S = 75.0
_END_WITHIN_S = 120.0
_MIB = 1 << 20
_DISK_MB = 24
#: A run on a full disk: failed with PostgreSQL's message, or lost if a page had room for that.
_REFUSED, _UNWRITTEN = "No space left on device", "could not write to this database"
_GROUPS = Path("/sys/fs/cgroup")
#: Version 1 has a tree for each controller, version 2 one tree.
_LIMIT_FILES = {"pids": ("pids.max",), "memory": ("memory.max", "memory.limit_in_bytes")}


class Performer(fault_cases.Performer):
    """Performs cases on one site."""

    def perform(self, case: dict[str, Any]) -> dict[str, Any]:
        return self.perform_kind(case, KINDS[case["kind"]])


# Suspended processes


def redis_suspended(on: fault_cases.Performer, count: int, draw: random.Random) -> FaultResult:
    """Redis is suspended while one run is running and another is queued."""
    result = FaultResult("from the end of the suspension to the end of the queued run")
    for _ in range(count):
        worker = on.site.pid("worker")
        running = _long_run(on, seconds=SUSPENDED_S + 10)
        with on.site.frozen("Redis"):
            queued = on.ask()
            _require_pages(on, result, [(running, "running"), (queued, "queued")], SUSPENDED_S)
        _require_both_done(result, running, queued)
        result.require(psutil.pid_exists(worker) and on.site.pid("worker") == worker, "the worker ended")
    return result


def worker_suspended(on: fault_cases.Performer, count: int, draw: random.Random) -> FaultResult:
    """The worker's main process is suspended; the process that measures goes on."""
    result = FaultResult("from the end of the suspension to the end of the queued run")
    for _ in range(count):
        running = _long_run(on, seconds=20)
        with on.site.frozen("worker"):
            queued = on.ask()
            _require_pages(on, result, [(running, "running"), (queued, "queued")], 10)
            await_end(running, _END_WITHIN_S)
            result.require(fresh(running).status == Run.Status.DONE, "the running run did not go on")
            _require_pages(on, result, [(running, "done"), (queued, "queued")], SUSPENDED_S - 30)
        _require_both_done(result, running, queued)
    return result


def measuring_process_suspended(on: fault_cases.Performer, count: int, draw: random.Random) -> FaultResult:
    """The process that measures is suspended: its run is lost, and it writes nothing afterwards."""
    result = FaultResult("from the end of the suspension to the end of the next run")
    for _ in range(count):
        running = _long_run(on, seconds=SUSPENDED_S * 2)
        [child] = on.site.pool_children()
        os.kill(child, signal.SIGSTOP)
        try:
            _require_pages(on, result, [(running, "running")], 5)
            await_end(running, 45)
            _require_pages(on, result, [(running, "lost")], SUSPENDED_S - 45)
            queued = on.ask()
            result.require(fresh(queued).status == Run.Status.QUEUED, "two runs at once")
        finally:
            os.kill(child, signal.SIGCONT)
        begin, before = time.monotonic(), fault_cases.whole(running)
        await_end(queued, _END_WITHIN_S)
        fault_cases.require_done_once(result, queued, begin)
        result.require(fault_cases.whole(running)["status"] == Run.Status.LOST, "the lost run came back")
        result.require(fault_cases.whole(running)["error"] == before["error"], "the lost run changed")
    return result


def _long_run(on: fault_cases.Performer, seconds: float) -> Run:
    """A run of the fake layer that takes at least that long, which has begun to measure.

    Each block has a slice of the variant and one of its control. Quicker operations would reach the
    cap of a slice, so that a fast machine ends the run early.
    """
    run = on.ask(blocks=max(2, math.ceil(seconds / 5)), slice_ms=2500, nominal_us={"fake": 1000.0})
    await_state("the run measures", lambda: fresh(run).progress > 0, 30.0)
    return run


def _require_pages(
    on: fault_cases.Performer, result: FaultResult, expected: Sequence[tuple[Any, ...]], seconds: float
) -> None:
    """For that long, the pages and the list answer, and show each run in one of its expected states.

    `expected`: runs, each with these states.
    """
    until = time.monotonic() + seconds
    while True:
        for run, *states in expected:
            shown = on.browser.progress(run.pk)["status"]
            result.require(shown in states, f"run {run.pk} is shown as {shown}, not {' or '.join(states)}")
            page = on.browser.get(f"/admin/pgperf/run/{run.pk}/change/")
            _require_answer(result, page)
        _require_answer(result, on.browser.get("/admin/pgperf/run/"))
        if time.monotonic() >= until or result.wrong:
            return
        time.sleep(5.0)


def _require_answer(result: FaultResult, page: Any) -> None:
    result.require(page.status == 200 and "Traceback" not in page.body, f"a page answered {page.status}")


def _require_both_done(result: FaultResult, running: Run, queued: Run) -> None:
    begin = time.monotonic()
    for run in (running, queued):
        await_end(run, _END_WITHIN_S)
    fault_cases.require_done_once(result, running, timed=False)
    fault_cases.require_done_once(result, queued, begin)


# A hot standby as target


def hot_standby(on: fault_cases.Performer, count: int, draw: random.Random) -> FaultResult:
    """Runs on a hot standby: it is measured as any server, and every write is refused."""
    result = FaultResult("from the request to the end")
    with on.site.standby() as port:
        on.site.keep_password(ROLE, on.site.env["PGPERF_DB_PASSWORD"])
        logins = {login: _standby_database(port, login) for login in (ROLE, READER)}
        if not _has_fixture():
            _require_fixture_on_primary(on, result, logins[ROLE])
        for _ in range(count):
            for login, database in logins.items():
                _require_on_standby(on, result, database, login)
    return result


def _has_fixture() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_regclass('pgperf.site') IS NOT NULL")
        return bool(cursor.fetchone()[0])


def _require_on_standby(
    on: fault_cases.Performer, result: FaultResult, database: Database, login: str
) -> None:
    """`login`: one that may write on the primary, or the reader."""
    real: dict[str, Any] = {"layers": ("libpq", "psycopg"), "blocks": 1}
    catalog = on.ask(database, **real, diagnostic_ms=500)
    own = on.ask(database, **real, sql="SELECT count(*) FROM pg_class")
    for run in (catalog, own):
        await_end(run, _END_WITHIN_S)
        _record_length(result, run)
    result.require(fresh(catalog).status == Run.Status.DONE, f"the catalog: {fresh(catalog).error}")
    if login == READER:
        proved = "proved" in str(fresh(own).environment.get("access"))
        result.require(proved and fresh(own).status == Run.Status.DONE, f"own SQL: {fresh(own).error}")
    else:
        result.require("a login that cannot write" in fresh(own).error, f"own SQL: {fresh(own).error}")


def _require_fixture_on_primary(on: fault_cases.Performer, result: FaultResult, database: Database) -> None:
    """The fixture is made on the primary, by a run there, and replicated."""
    absent = on.ask(database, layers=("libpq",))
    await_end(absent, _END_WITHIN_S)
    result.require("the server is a standby" in fresh(absent).error, f"no fixture: {fresh(absent).error}")
    await_end(on.ask(layers=("libpq",)), _END_WITHIN_S)
    time.sleep(1.0)  # until it is replicated


def _standby_database(port: int, login: str) -> Database:
    dbname = Database.objects.get(name="demo").dbname
    values = {"dbname": dbname, "user": login, "credential": f"file:{login}", "allow_fixtures": True}
    database = Database.objects.update_or_create(name=f"standby-{login}", defaults=values)[0]
    fields = {"host": "127.0.0.1", "port": port, "sslmode": "disable"}
    Target.objects.update_or_create(database=database, route="tcp", defaults=fields)
    return database


# The disk of the site's own database


def disk_full(on: fault_cases.Performer, count: int, draw: random.Random) -> FaultResult:
    """The disk of pgperf's tables fills up during a run, for longer than the run retries."""
    result = FaultResult("from the return of space to the end of the run")
    with _small_disk(on.site) as disk:
        for _ in range(count):
            run = on.ask(blocks=60, slice_ms=500, layers=("libpq",))
            await_state("three blocks are stored", partial(_has_blocks, run, 3), 60.0)
            before = blocks_of(run)
            with _filled(disk):
                _require_pages(on, result, [(run, "running")], 1)
                await_state("the run has ended", partial(_is_shown_as_ended, run), 90.0)
                _require_pages(on, result, [(run, *_ends_from(small_runs.shown(run)["status"]))], 10)
            begin = time.monotonic()
            await_true(partial(_is_stored_as_ended, run), 30.0)
            result.took.append(round(time.monotonic() - begin, 2))
            _require_reason(result, run, _REFUSED if fresh(run).status == Run.Status.FAILED else _UNWRITTEN)
            result.require(set(before) <= set(blocks_of(run)), "stored blocks are gone")
    return result


def _has_blocks(run: Run, count: int) -> bool:
    return len(blocks_of(run)) >= count


def _is_shown_as_ended(run: Run) -> bool:
    """As lost, or as failed where the update of its row still found room in a page."""
    return small_runs.shown(run)["status"] in (Run.Status.LOST, Run.Status.FAILED)


def _ends_from(status: str) -> tuple[str, ...]:
    """What it may be shown as from then on: a run without a sign of life is lost until its process
    can store why it failed.
    """
    return (status, Run.Status.FAILED) if status == Run.Status.LOST else (status,)


def _is_stored_as_ended(run: Run) -> bool:
    return fresh(run).status not in (Run.Status.QUEUED, Run.Status.RUNNING)


@contextmanager
def _small_disk(site: Site) -> Iterator[Path]:
    """pgperf's tables are on a file system of a few megabytes meanwhile."""
    disk = site.server_directory("small")
    owner = disk.stat()
    options = f"size={_DISK_MB}m,uid={owner.st_uid},gid={owner.st_gid},mode=700"
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "pgperf-soak", str(disk)], check=True)
    try:
        location = disk / "tablespace"
        location.mkdir(mode=0o700)
        os.chown(location, owner.st_uid, owner.st_gid)
        with site.superuser() as server:
            server.execute(f"CREATE TABLESPACE small OWNER pgperf LOCATION '{location}'")
            _move_tables(server, "small")
        try:
            yield disk
        finally:
            with site.superuser() as server:
                _move_tables(server, "pg_default")
                server.execute("DROP TABLESPACE small")
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)


def _move_tables(server: Any, tablespace: str) -> None:
    for kind, letter in (("TABLE", "r"), ("INDEX", "i")):
        names = server.execute(
            "SELECT oid::regclass::text FROM pg_class WHERE relkind = %s AND relname LIKE 'pgperf\\_%%'"
            " AND relnamespace = 'public'::regnamespace",
            [letter],
        ).fetchall()
        for (name,) in names:
            server.execute(f"ALTER {kind} {name} SET TABLESPACE {tablespace}")


@contextmanager
def _filled(disk: Path) -> Iterator[None]:
    """No byte is free on the disk meanwhile."""
    ballast = disk / "ballast"
    try:
        with open(ballast, "wb", buffering=0) as file, suppress(OSError):
            while True:
                file.write(bytes(4096))
        yield
    finally:
        ballast.unlink()


# Control groups


def too_few_processes(on: fault_cases.Performer, count: int, draw: random.Random) -> FaultResult:
    """The worker's control group allows too few processes for the clients of a run."""
    result = FaultResult("from the request to the end")
    for number in range(count):
        tasks = sum(process.num_threads() for process in _worker_tree(on.site))
        with _limited(on.site, "pids", tasks + number % 4):
            run = on.ask(layers=("libpq", "psycopg"), clients=(8,), blocks=2)
            await_end(run, _END_WITHIN_S)
        _require_end(result, run, "processes")
    return result


def too_little_memory(on: fault_cases.Performer, count: int, draw: random.Random) -> FaultResult:
    """The worker's control group allows too little memory for the clients of a run."""
    result = FaultResult("from the request to the end")
    for number in range(count):
        used = sum(process.memory_info().rss for process in _worker_tree(on.site))
        with _limited(on.site, "memory", used + (8, 100)[number % 2] * _MIB):
            run = on.ask(layers=("libpq", "psycopg"), clients=(8,), blocks=2)
            await_end(run, _END_WITHIN_S)
        _require_end(result, run, "memory")
    return result


def _require_end(result: FaultResult, run: Run, word: str) -> None:
    _record_length(result, run)
    _require_reason(result, run, word)


def _record_length(result: FaultResult, run: Run) -> None:
    ended = fresh(run)
    if ended.finished_at:
        result.took.append(round((ended.finished_at - ended.requested_at).total_seconds(), 2))


def _require_reason(result: FaultResult, run: Run, word: str) -> None:
    """The run has ended, with a reason that names what was lacking."""
    ended = fresh(run)
    result.require(ended.status in (Run.Status.FAILED, Run.Status.LOST), f"it is {ended.status}")
    result.require(word in ended.error and "Unexpected" not in ended.error, f"the reason: {ended.error}")


def _worker_tree(site: Site) -> list[psutil.Process]:
    worker = psutil.Process(site.pid("worker"))
    return [worker, *worker.children(recursive=True)]


@contextmanager
def _limited(site: Site, controller: str, limit: int) -> Iterator[None]:
    """The worker and its children are in a control group with that limit meanwhile."""
    top = _GROUPS / controller if (_GROUPS / controller).is_dir() else _GROUPS
    group = top / f"pgperf-soak-{os.getpid()}"
    group.mkdir()
    tree = _worker_tree(site)
    before = {process.pid: _group_of(process.pid, controller) for process in tree}
    try:
        for pid in before:
            (group / "cgroup.procs").write_text(str(pid))
        file = next(file for name in _LIMIT_FILES[controller] if (file := group / name).exists())
        file.write_text(str(limit))
        yield
    finally:
        for pid in (group / "cgroup.procs").read_text().split():
            with suppress(OSError):
                (top / before.get(int(pid), "") / "cgroup.procs").write_text(pid)
        group.rmdir()


def _group_of(pid: int, controller: str) -> str:
    """A process's group of that controller, relative to its tree."""
    for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers in (controller, ""):
            return path.strip("/")
    return ""


KINDS: dict[str, fault_cases.Kind] = {
    "Redis suspended": redis_suspended,
    "worker suspended": worker_suspended,
    "measuring process suspended": measuring_process_suspended,
    "hot standby": hot_standby,
    "disk full": disk_full,
    "too few processes": too_few_processes,
    "too little memory": too_little_memory,
}  # fmt: skip
