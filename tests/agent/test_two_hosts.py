"""A run between two hosts: the site and its worker on one, PostgreSQL and the agent on the other.

Neither sees the other's processes. The same run without the agent shows what is unknown then.
"""

import json
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from example.stack import web
from example.stack.network_hosts import Host, join, refusal
from example.stack.network_site import environment, start_broker, start_server
from example.stack.part import TIMEOUT_S, Part
from example.stack.place import Place
from example.stack.state import State

REFUSAL = refusal()
pytestmark = pytest.mark.skipif(bool(REFUSAL), reason=REFUSAL)
NETWORK = "10.213.7"
QUEUE = "pgperf-agent-db1"
#: All its blocks, however long they take.
RUN = "run orm-overhead --quick --json --routes tcp --slice-ms 150 --precision 0"


@dataclass
class Site:
    """A site whose database is on another host. `app` is where its commands run."""

    app: Host
    db: Host
    environment: dict[str, str]
    directory: Path

    def manage(self, *words: str) -> str:
        return self.app.run(sys.executable, "manage.py", *words, cwd=web.CHECKOUT, env=self.environment)

    def measure(self, more: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.manage("pgperf", *f"{RUN} {more}".split()))
        return found

    def measure_and(self, more: str, then: Callable[[], None]) -> dict[str, Any]:
        """As `measure`; `then` happens when a quarter is done."""
        argv = self.app.inside(
            sys.executable, "manage.py", "pgperf", *f"{RUN} {more}".split(), cwd=web.CHECKOUT
        )
        told = self.directory / "told.json"
        with (
            told.open("w") as stdout,
            subprocess.Popen(
                argv, stdout=stdout, stderr=subprocess.PIPE, text=True, env=self.environment
            ) as run,
        ):
            assert run.stderr
            assert any(_percent(line) >= 25 for line in run.stderr), "its progress"
            then()
            run.stderr.read()
        found: dict[str, Any] = json.loads(told.read_text())
        return found

    def agent(self) -> Part:
        argv = [
            *web.worker(self.directory, {}).argv,
            "-n",
            "agent@db1",
            f"--pidfile={self.directory}/agent.pid",
        ]
        argv[argv.index("-Q") + 1] = QUEUE
        return Part(
            name="agent",
            argv=self.db.inside(*argv, cwd=web.CHECKOUT),
            log=self.directory / "agent.log",
            answers=lambda part: " ready." in part.log_since_start(),
            polite=signal.SIGTERM,
            env=self.environment,
        )

    def stop(self, agent: Part) -> None:
        """By the process's number over there: what we started only entered that host."""
        assert agent.process
        self.db.run("kill", self.pid_of_agent())
        agent.process.wait(TIMEOUT_S)

    def kill(self, agent: Part) -> None:
        """With the child that reads, at once."""
        assert agent.process
        pid = self.pid_of_agent()
        self.db.run("sh", "-c", f"kill -KILL {pid} $(pgrep -P {pid})")
        agent.process.wait(TIMEOUT_S)
        (self.directory / "agent.pid").unlink()

    def pid_of_agent(self) -> str:
        return (self.directory / "agent.pid").read_text().strip()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Its database names the agent."""
    tmp_path = tmp_path_factory.mktemp("site")
    place, state = Place(tmp_path / "stack"), State()
    place.prepare()
    state.choose_ports(["postgres", "redis"])
    try:
        with Host() as app, Host() as db:
            here, there = join(app, db, NETWORK)
            start_server(db, there, f"{NETWORK}.0/30", place, state)
            start_broker(app, here, state)
            site = Site(app, db, environment(here, there, state), tmp_path)
            site.manage("migrate", "--verbosity=0")
            site.manage("pgperf", "add", "default", "--allow-fixtures", "--agent", "db1")
            yield site
    finally:
        place.remove()


def test_a_server_on_another_host_is_read_by_the_agent_there(site: Site) -> None:
    agent = site.agent()
    agent.start()
    told = site.measure("--layers psycopg2,psycopg --rounds 3 --blocks 2")

    host = told["run"]["environment"]["server_host"]
    assert host["agent"] == "agent@db1"
    assert "unknown" not in host
    assert host["clock_error_us"] < 20_000
    assert host["agent_cpu_percent"] < 2
    assert "not on this machine" in told["run"]["environment"]["placement"]["note"]
    for row in told["variants"]:
        cpu = row["cpu_us_per_op"]
        assert 5 < cpu["server"] < row["us_per_op"], row["label"]
        assert cpu["auxiliaries"] is not None
        assert 0 < row["cpu_account"]["busiest"]["server"] <= 1
        there = row["cpu_account"]["server_host"]
        assert there["cpus"] == psutil.cpu_count()
        assert there["share"]["server"] > 0
        assert row["top"]["server_host"]["host"]["id"] is not None
        backends = [process for process in row["top"]["processes"] if process["role"] == "server"]
        assert [process["name"] for process in backends] == ["postgres"]
        assert 0 < backends[0]["cpu_percent"] < 110

    site.stop(agent)
    told = site.measure("--layers psycopg --rounds 1 --blocks 1 --diagnostic-ms 0")
    assert QUEUE in told["run"]["environment"]["server_host"]["unknown"]
    assert {row["cpu_us_per_op"]["server"] for row in told["variants"]} == {None}
    assert all(row["cpu_us_per_op"]["client_user"] is not None for row in told["variants"])


def test_a_run_continues_after_its_agent_was_killed(site: Site) -> None:
    agent = site.agent()
    agent.start()
    told = site.measure_and(
        "--layers psycopg --rounds 3 --blocks 8 --diagnostic-ms 0", lambda: site.kill(agent)
    )
    assert told["run"]["status"] == "done"
    assert not told["run"]["partial"]
    assert "did not answer" in told["run"]["environment"]["server_host"]["unknown"]
    for row in told["variants"]:
        assert 5 < row["cpu_us_per_op"]["server"] < row["us_per_op"], (
            "what was read before, over its own operations"
        )
    assert all(row["cpu_us_per_op"]["client_user"] is not None for row in told["variants"])


def _percent(line: str) -> int:
    """Of a line such as "50 %"; a run that is ahead of its prediction leaves some out."""
    found = re.match(r"(\d+) %", line)
    return int(found[1]) if found else 0


def test_a_simulated_host_leaves_no_processes() -> None:
    with Host() as host:
        inner = subprocess.Popen(host.inside("sleep", "infinity"))
        init = psutil.Process(host.init)
        assert host.run("sh", "-c", "echo $$").strip().isdecimal()
    assert inner.wait(10) != 0
    assert not init.is_running()
