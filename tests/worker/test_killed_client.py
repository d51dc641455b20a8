"""SIGKILL of a client in the middle of a slice, by the kernel for lack of memory and by a program."""

import os
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest

from example.stack.postgres import READER
from pgperf.models import Database, Run, Target, Workload
from pgperf.runner.client_group import ClientGroup
from pgperf.runs.definitions import Overrides
from pgperf.worker import execution
from tests.factories import new_benchmark
from tests.short_runs import request

_WIDE = "pgperf-test-wide"
#: Its result is wide while a connection of that name is open.
_SQL = (
    f"SELECT repeat('x', 60000000 * count(*)::int) FROM pg_stat_activity WHERE application_name = '{_WIDE}'"
)
_TINY = 1 << 20
_GROUPS = Path("/sys/fs/cgroup")
#: Version 1 of control groups has a tree for each controller, version 2 one tree.
_TREES = ((_GROUPS / "memory", "memory.limit_in_bytes"), (_GROUPS, "memory.max"))

Kill = Callable[[int], None]


@pytest.fixture
def tiny_group() -> Iterator[Path]:
    """A control group of 1 MiB."""
    top, file = next(((top, file) for top, file in _TREES if top.is_dir()), _TREES[-1])
    group = top / f"pgperf-test-{os.getpid()}"
    try:
        group.mkdir()
        (group / file).write_text(str(_TINY))
    except OSError as error:
        with suppress(OSError):
            group.rmdir()
        pytest.skip(f"takes a memory control group of its own: {error}")
    yield group
    group.rmdir()


@pytest.fixture
def out_of_memory(tiny_group: Path, superuser_login: dict[str, Any]) -> Iterator[Kill]:
    """Moves a process into the group, where the kernel ends it when the next result needs more."""
    with ExitStack() as stack:

        def kill(pid: int) -> None:
            (tiny_group / "cgroup.procs").write_text(str(pid))
            stack.enter_context(psycopg.connect(**superuser_login, application_name=_WIDE))

        yield kill


@pytest.fixture
def database(transactional_db: None, stack: dict[str, str], c_client: Path, settings: Any) -> Database:
    """The stack's own database for its login that cannot write."""
    settings.PGPERF = {**settings.PGPERF, "BUILD_DIR": c_client.parent}
    row = Database.objects.create(
        name="demo", dbname=stack["PGPERF_DB_NAME"], user=READER, credential=f"file:{READER}"
    )
    port = int(stack["PGPERF_DB_PORT"])
    Target.objects.create(database=row, route="tcp", host="127.0.0.1", port=port, sslmode="disable")
    return row


def killed_in_a_slice(database: Database, layer: str, kill: Kill, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A run whose client is killed in a slice of its second round."""
    shares, collect = [0.0], ClientGroup.collect

    def killing(self: ClientGroup, request: Any) -> Any:
        if shares[-1] >= 0.5:
            kill(self.clients[0].pid)
        return collect(self, request)

    class Listener:
        def progress(self, share: float, message: str) -> None:
            shares.append(share)

    monkeypatch.setattr(ClientGroup, "collect", killing)
    work = Workload.objects.create(name="wide", title="Wide", sql=_SQL)
    benchmark = new_benchmark(
        [work], name="wide", title="Wide", database=database, layers=[layer], routes=["tcp"],
        modes=["simple"], clients=[1],
    )  # fmt: skip
    small = Overrides(
        blocks=1, rounds=2, slice_ms=500, diagnostic_ms=0, quick=True, placement="scheduler", idle="system"
    )
    asked = request(benchmark, database, small, foreground=True)
    return execution.perform(asked.pk, "tests", Listener())


@pytest.mark.parametrize("layer", ["libpq", "psycopg"])
def test_a_client_that_the_kernel_ended_for_lack_of_memory(
    database: Database, out_of_memory: Kill, layer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = killed_in_a_slice(database, layer, out_of_memory, monkeypatch)
    assert run.status == Run.Status.FAILED
    assert re.match(rf"{layer} · tcp( · control 1)?: out of memory \(the kernel ended it: ", run.error)
    assert "Read fewer rows (LIMIT) or columns" in run.error


def test_a_client_that_a_program_killed(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    run = killed_in_a_slice(database, "libpq", lambda pid: os.kill(pid, signal.SIGKILL), monkeypatch)
    assert run.status == Run.Status.FAILED
    assert re.match(r"libpq · tcp( · control 1)?: ended unexpectedly \(signal SIGKILL\): ", run.error)
    assert "The system's log may have its name" in run.error
    assert "start the run again" in run.error
