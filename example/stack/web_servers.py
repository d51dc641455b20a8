"""The processes of each web step, started together and started anew for each block of a run."""

import os
import random
from collections.abc import Collection, Iterable, Mapping, Sequence

from example.stack import apache, clusters, gunicorn, nginx, postgres, web_steps
from example.stack.errors import StackError
from example.stack.part import Part
from example.stack.place import Place
from example.stack.state import State
from example.stack.web_steps import CLUSTERS, STEPS
from pgperf.runner.memory import MIB, free_bytes

#: Resident memory in MiB: of a gunicorn or Apache process that loads the site, of a worker that
#: shares it, and of a cluster.
SITE_MIB, WORKER_MIB, CLUSTER_MIB = 90, 35, 120


def check(steps: Collection[str]) -> None:
    """Raises StackError if a program of these steps is missing or their memory is not free."""
    servers = {STEPS[name].server for name in steps}
    if "apache" in servers:
        apache.check()
    if "nginx" in servers:
        nginx.program()
    if servers & {"nginx", "gunicorn"}:
        gunicorn.check()
    need, free = memory_mib(steps), free_bytes() // MIB
    if need > free:
        raise StackError(
            f"the web servers of {len(steps)} steps need about {need} MiB; {free} MiB are free. End other"
            " programs, or start fewer steps: `python -m example.stack up --web=web_nginx,web_pgbouncer`"
        )


def memory_mib(steps: Collection[str]) -> int:
    """The memory that the steps' servers need together, MiB."""
    own = {
        "apache": web_steps.workers() * SITE_MIB,
        "gunicorn": SITE_MIB + web_steps.workers() * WORKER_MIB,
        "nginx": SITE_MIB + web_steps.workers() * WORKER_MIB,
    }
    names = web_steps.parts_of(steps)
    return sum(CLUSTER_MIB if name in CLUSTERS else own[STEPS[name].server] for name in names)


class WebServers:
    """The parts of web steps and their clusters.

    `env`: the variables of the stack. `running`: all parts of the stack, which these join and leave.
    """

    def __init__(
        self, place: Place, state: State, env: Mapping[str, str], lock: int, running: list[Part]
    ) -> None:
        self._place, self._state, self._env = place, state, env
        self._lock, self._running = lock, running
        self._parts: dict[str, list[Part]] = {}

    def start_anew(self, steps: Collection[str], block: int = 0) -> None:
        """End the servers of these steps, start new ones, and return when all answer.

        Steps that do not run yet start. Clusters change their roles with `block`. Raises StackError
        with the reason; then none of these servers runs.
        """
        if unknown := set(steps) - STEPS.keys():
            raise StackError(f"no such step: {', '.join(sorted(unknown))}; choose from {', '.join(STEPS)}")
        names = web_steps.parts_of(steps)
        self.stop(names)
        try:
            for name in _in_random_order(names):
                self._launch(name, block)
            for part in self.parts_of(names):
                part.await_answer()
        except BaseException:
            self.stop(names)
            raise

    def stop(self, names: Collection[str] | None = None) -> None:
        """Stop these steps and clusters, all by default, and wait for their end."""
        names = list(self._parts) if names is None else names
        parts = self.parts_of(names)
        for part in parts:
            part.ask_to_stop()
        for part in parts:
            part.stop()
            self._running.remove(part)
        for name in names:
            self._parts.pop(name, None)

    def parts_of(self, names: Iterable[str]) -> list[Part]:
        """The running parts of these steps and clusters."""
        return [part for name in names for part in self._parts.get(name, ())]

    def _launch(self, name: str, block: int) -> None:
        self._parts[name] = []
        for part in self._make(name, block):
            part.pass_fds = [self._lock]
            self._parts[name].append(part)
            self._running.append(part)
            part.launch()
            if name in CLUSTERS:
                part.await_answer()
                clusters.create_login(self._place, self._state, name)

    def _make(self, name: str, block: int) -> list[Part]:
        place, ports = self._place, self._state.ports
        if name in CLUSTERS:
            clusters.prepare(place, self._state)
            return [clusters.part(place, self._state, name, block)]
        step, port, env = STEPS[name], ports[name], self._site(name)
        if step.server == "apache":
            return [apache.part(place, name, env, port)]
        application = web_steps.application(name)
        served = gunicorn.part(place, application, env, ports[application])
        return (
            [served]
            if step.server == "gunicorn"
            else [served, nginx.part(place, name, port, ports[application])]
        )

    def _site(self, name: str) -> dict[str, str]:
        """The environment of the site in this step."""
        step, ports = STEPS[name], self._state.ports
        own = {"DJANGO_SETTINGS_MODULE": "example.web_settings", "PGPERF_DB_PORT": str(ports[step.database])}
        if step.pooled:
            own["PGPERF_DB_PORT"] = str(ports["pgbouncer"])
            own["PGPERF_DB_NAME"] = step.database if step.database in CLUSTERS else postgres.DATABASE
        return {**os.environ, **self._env, **own, **step.settings}


def _in_random_order(names: Sequence[str]) -> list[str]:
    """The clusters, and then the steps, each at random: processes that start earlier have other
    memory, and may be slower for as long as they live.
    """
    clusters = [name for name in names if name in CLUSTERS]
    steps = [name for name in names if name not in CLUSTERS]
    return [*random.sample(clusters, len(clusters)), *random.sample(steps, len(steps))]
