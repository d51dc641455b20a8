"""Four load hosts and one more for the database: network namespaces, joined by virtual cables.

Each load host has a Celery worker and a monotonic clock that is minutes away from the others'. The
owner of the runs is on the database's host. The machine is one: what the hosts do together is no
faster than what one does.
"""

import json
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from example.stack import web
from example.stack.part import Part
from example.stack.place import Place
from example.stack.state import State
from tests.agent.network_hosts import Host, refusal, star
from tests.network_site import environment, start_broker, start_server

REFUSAL = refusal()
pytestmark = pytest.mark.skipif(bool(REFUSAL), reason=REFUSAL)
NETWORK = "10.213.9"
#: By how many seconds each host's monotonic clock is ahead.
AHEAD_S = {"a": 0, "b": 420, "c": -600, "d": 86_400}
RUN = (
    "run orm-overhead --quick --json --layers libpq --routes tcp --clients 8 --diagnostic-ms 0 --precision 0"
)


#: Two management commands in one process.
SET_UP = """
import django
from django.core.management import call_command
django.setup()
call_command("migrate", verbosity=0)
call_command("pgperf", "add", "default", "--allow-fixtures")
"""


@dataclass
class Fleet:
    """The database's host, where the owner runs, and the load hosts by name."""

    db: Host
    hosts: dict[str, Host]
    environment: dict[str, str]

    def measure(self, more: str) -> dict[str, Any]:
        words = f"pgperf {RUN} {more}".split()
        told = self.db.run(sys.executable, "manage.py", *words, cwd=web.CHECKOUT, env=self.environment)
        found: dict[str, Any] = json.loads(told)
        return found


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    tmp_path = tmp_path_factory.mktemp("fleet")
    place, state = Place(tmp_path / "stack"), State()
    place.prepare()
    state.choose_ports(["postgres", "redis"])
    try:
        with ExitStack() as stack:
            db = stack.enter_context(Host())
            hosts = {name: stack.enter_context(Host(ahead_s)) for name, ahead_s in AHEAD_S.items()}
            address = star(db, list(hosts.values()), NETWORK)
            start_server(db, address, f"{NETWORK}.0/24", place, state)
            start_broker(db, address, state)
            found = Fleet(db, hosts, environment(address, address, place, state))
            db.run(sys.executable, "-c", SET_UP, cwd=web.CHECKOUT, env=found.environment)
            _workers(found, tmp_path).start()
            yield found
    finally:
        place.remove()


def _workers(fleet: Fleet, directory: Path) -> Part:
    """One on each load host; they end with their hosts.

    All are of one session. Where the kernel gives each session its share of a busy machine
    (autogroup), four sessions would have more than one.
    """
    commands = [
        shlex.join(host.inside(*web.worker(directory, {}, f"pgperf-load-{name}").argv, cwd=web.CHECKOUT))
        for name, host in fleet.hosts.items()
    ]
    return Part(
        name="load hosts",
        argv=["sh", "-c", " & ".join([*commands, "wait"])],
        log=directory / "workers.log",
        answers=lambda part: part.log_since_start().count(" ready.") == len(commands),
        polite=signal.SIGTERM,
        env=fleet.environment,
    )


def test_one_host_and_four_give_the_same_throughput(fleet: Fleet) -> None:
    """With the same clients in all, within the interval of their comparison, in the same rounds."""
    told = fleet.measure("--load-hosts 1,4 --load-host-names a,b,c,d --slice-ms 300 --rounds 4 --blocks 4")
    assert told["run"]["status"] == "done"
    (compared,) = (
        each for each in told["comparisons"] if "4 load hosts" in each["variant"] and not each["aa"]
    )
    assert "1 load host" in compared["baseline"]
    assert compared["outcome"] != "differs", compared
    rows = {row["label"]: row for row in told["variants"]}
    four = rows["libpq · tcp · 8 clients · 4 load hosts"]
    assert [host["name"] for host in four["cpu_account"]["load_hosts"]] == list(AHEAD_S)
    assert four["verdict"]["checks"]["little"]["holds"]

    facts = told["run"]["environment"]["load_hosts"]
    assert set(facts["clocks"]) == set(AHEAD_S)
    for name, clock in facts["clocks"].items():
        assert abs(clock["offset_ms"] + 1e3 * AHEAD_S[name]) * 1e3 <= clock["error_us"] < 5_000, name


def test_a_host_whose_network_is_down_is_named(fleet: Fleet) -> None:
    """Nothing of it is left on the server, and the next run has it again."""
    lost = fleet.hosts["b"]
    argv = fleet.db.inside(
        sys.executable, "manage.py", *f"pgperf {RUN} --load-hosts 4 --blocks 10 --slice-ms 300".split(),
        cwd=web.CHECKOUT,
    )  # fmt: skip
    with subprocess.Popen(
        argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=fleet.environment
    ) as run:
        assert run.stderr
        assert any(re.match(r"[1-9]0 %", line) for line in run.stderr), "its progress"
        lost.run("ip", "link", "set", "cable", "down")
        try:
            rest = run.stderr.read()
        finally:
            lost.run("ip", "link", "set", "cable", "up")
            lost.run("ip", "route", "replace", f"{NETWORK}.254/32", "via", f"{NETWORK}.5")
    assert run.returncode != 0
    assert "load host b: no sign of life" in rest
