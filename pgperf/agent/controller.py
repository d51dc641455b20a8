"""The run's side of an agent: requests it, orders it to sample, and collects the samples.

A failure never stops the run: its environment keeps the reason, and the server's CPU time is
unknown.
"""

import logging
import time
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from django.db import Error

from pgperf.agent import answers, clock, rows
from pgperf.conf import get_settings
from pgperf.core.exceptions import AgentFailed, BrokerUnreachable
from pgperf.models import Run
from pgperf.runner.remote.clock_offset import ClockOffset
from pgperf.runner.remote.counters import CounterSamples
from pgperf.runner.remote.server import Address, AgentSamples, RemotePooler, WatchRequest
from pgperf.runs import broker, state
from pgperf.runs.db_retry import drop_broken_connection, retry_while_down
from pgperf.runs.order_rows import Answer

logger = logging.getLogger(__name__)

#: Time limit for an answer of the agent, the first one included; after it the run continues without
#: the agent.
ANSWER_S = 5.0
_ON_WAIT_S = 0.05
#: Share of STALE_SECONDS for which it retries while the site's database is down.
_RETRY_SHARE = 2 / 3

T = TypeVar("T")


def retry(step: Callable[[], T]) -> T:
    """While the site's database restarts, for as long as a run does."""
    return retry_while_down(step, get_settings().STALE_SECONDS * _RETRY_SHARE, "orders to the agent")


class AgentController:
    """A run's view of the agent on its database's host; a `runner.remote.Agent`.

    Close it when the run is over.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._name = run.database.agent if run.database else ""
        self._row_id = 0
        self._why = ""  # why there is nothing to be had of it
        self._clocks: ClockOffset | None = None  # of the last "watch"
        self._poolers: dict[Address, RemotePooler] = {}
        self._facts: dict[str, Any] = {}

    def ask(self) -> None:
        self._guarded(self._ask)

    def watch(self, order: WatchRequest) -> None:
        if self._row_id and not self._why:
            self._guarded(lambda: self._watch(order))

    def hand_over(self) -> AgentSamples | None:
        if not self._clocks or self._why:
            return None
        return self._guarded(self._hand_over)

    def facts(self) -> dict[str, Any]:
        """Empty where no agent was needed.

        `unknown`: why nothing was seen, or from some block on nothing more.
        """
        return {**self._facts, "unknown": self._why} if self._why else self._facts

    def close(self) -> None:
        """Let the agent go.

        Safe at any time; what cannot be written now is cleared away by the next run.
        """
        if self._row_id:
            try:
                rows.close(self._row_id)
            except Error:
                drop_broken_connection()

    def _ask(self) -> None:
        if not self._name:
            raise AgentFailed("the server is on another host, and its database names no agent (field agent)")
        queue = broker.agent_queue(self._name)
        if not retry(lambda: state.live_agents(self._name).exists()):
            raise AgentFailed(f"no agent {self._name} is there: start a worker on queue {queue} on that host")
        self._row_id = retry(partial(rows.open_for, self._run, queue))
        broker.send_watch(self._row_id, queue)

    def _watch(self, order: WatchRequest) -> None:
        self._clocks = None
        answer = self._ordered({"watch": order.to_json()})
        found = answers.watching(answer.data)
        if order.backends and len(found.missing) == len(order.backends):
            raise AgentFailed(
                f"agent {answer.agent} does not see the server's processes: "
                "it has to run on the database's host, and in its container"
            )
        self._clocks = self._to_ours(found.clock)
        self._poolers = found.poolers
        self._facts |= {"agent": answer.agent, "kernel": found.kernel, "processors": found.cpus}

    def _hand_over(self) -> AgentSamples:
        first, self._clocks = self._clocks, None
        assert first
        answer = self._ordered({"hand_over": True})
        found = answers.handed_over(answer.data)
        between = ClockOffset.over(first, self._to_ours(found.clock))
        readings = CounterSamples.unpack(answer.readings).on_clock(between)
        self._remember(between, found.share)
        cpus = int(self._facts["processors"])
        return AgentSamples(readings, between.error_ns, self._poolers, cpus, found.processes)

    def _remember(self, between: ClockOffset, share: float) -> None:
        """The worst of all blocks."""
        for name, value in (("clock_error_us", between.error_ns / 1000), ("agent_cpu_percent", 100 * share)):
            self._facts[name] = max(self._facts.get(name, 0.0), value)

    def _to_ours(self, agents: ClockOffset) -> ClockOffset:
        """From the agent's clock to ours, by way of the database's."""
        return agents.then_back(retry(partial(clock.offset, self._row_id)))

    def _ordered(self, what: dict[str, Any]) -> Answer:
        number = retry(partial(rows.order, self._row_id, what))
        deadline = time.monotonic() + ANSWER_S
        while time.monotonic() < deadline:
            asked_s = time.monotonic()
            found = retry(partial(rows.answered, self._row_id, number))
            deadline += time.monotonic() - asked_s  # the agent cannot answer while the database is away
            if found and found.refusal:
                raise AgentFailed(f"agent {found.agent}: {found.refusal}")
            if found:
                return found
            time.sleep(_ON_WAIT_S)
        raise AgentFailed(self._silence())

    def _silence(self) -> str:
        agent = retry(partial(rows.taken_by, self._row_id))
        if agent:
            return f"agent {agent} did not answer within {ANSWER_S:g} s"
        return (
            f"agent {self._name} did not come within {ANSWER_S:g} s: "
            "is it busy with another run, or of another version of pgperf?"
        )

    def _guarded(self, step: Callable[[], Any]) -> Any:
        """What the step gives; None when it fails, and from then on nothing more is asked."""
        try:
            return step()
        except (AgentFailed, BrokerUnreachable) as error:
            self._why = str(error)
        except Error as error:
            drop_broken_connection()
            self._why = f"the site's own database did not answer ({type(error).__name__})"
        logger.warning("run %s: server time is unknown: %s", self._run.pk, self._why)
        return None
