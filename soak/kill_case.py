"""One kill case: request a run, kill a process at the given moment, and record the consequences."""

import logging
import re
import threading
import time
import uuid
from dataclasses import dataclass, field
from typing import Any

from django.db import connection

from pgperf.models import Database, Run
from pgperf.runs import db_retry
from soak import small_runs
from soak.browser import Browser
from soak.site import PARTS, Site, await_true, kill_and_await
from soak.small_runs import await_end, blocks_of, fresh, is_over, query, shown

logging.getLogger(db_retry.__name__).setLevel(logging.ERROR)  # the campaign kills the database itself

TERMINAL_WITHIN_S = 60.0
_NEXT_WITHIN_S = 60.0
_VICTIM_WITHIN_S = 20.0
_EARLY_S = 0.1
_POLL_S = 0.05

_LOST = r"No sign of life from celery@"
_SERVER = (
    r"closed the connection|connection closed|terminating connection|connection failed|refused"
    r"|recovery mode|starting up|shutting down|not accepting|login has been failing"
    r"|the connection is (closed|lost)|No such file|own database|SSL|EOF|reset by peer|conn crashed"
)
#: Victim -> the status other than "done" that its run may end with, and a pattern of the error.
REASONS: dict[str, tuple[str, str]] = {
    "worker": (Run.Status.LOST, _LOST),
    "pool child": (Run.Status.LOST, rf"process that measured is gone \(signal 9|{_LOST}"),
    "client": (Run.Status.FAILED, r"ended unexpectedly \(signal SIGKILL\)"),
    "backend": (Run.Status.FAILED, _SERVER),
    "postmaster": (Run.Status.FAILED, _SERVER),
    "PgBouncer": (Run.Status.FAILED, rf"pgbouncer.*({_SERVER})"),
}


@dataclass
class Observation:
    """The observed state after a case; `violations` compares it with what is promised."""

    victim: str
    status: str
    error: str
    moment: str  # the progress of the run when the victim was killed
    terminal_s: float  # from the kill to a final status on the page; -1: none in time
    attempt: int
    runs: int  # rows with the token of the request
    before: list[tuple[str, int]]  # stored blocks (variant, block) at the kill
    after: list[tuple[str, int]]
    orphans: int
    backends: int
    next_status: str
    extra: list[str] = field(default_factory=list)


def violations(seen: Observation) -> list[str]:
    """Every promise that does not hold, as a sentence."""
    lost = set(seen.before) - set(seen.after)
    findings = {
        f"{len(lost)} stored blocks are gone": bool(lost),
        f"{seen.runs} runs, attempt {seen.attempt}: not performed exactly once": (seen.runs, seen.attempt)
        != (1, 1),
        f"left over: {seen.orphans} clients, {seen.backends} backends": bool(seen.orphans or seen.backends),
        f"the next run is {seen.next_status}": seen.next_status != Run.Status.DONE,
    }
    return [
        *seen.extra,
        *_violations_of_end(seen),
        *(finding for finding, holds in findings.items() if holds),
    ]


def _violations_of_end(seen: Observation) -> list[str]:
    if not 0 <= seen.terminal_s <= TERMINAL_WITHIN_S:
        return [f"not terminal within {TERMINAL_WITHIN_S:.0f} s ({seen.status})"]
    if seen.status == Run.Status.DONE:
        there = len(seen.after)
        return [] if there == _all_blocks() else [f"done with {there} of {_all_blocks()} blocks"]
    status, words = REASONS.get(seen.victim, ("", "nothing"))
    fits = seen.status == status and re.search(words, seen.error)
    return [] if fits else [f"{seen.status} for a reason that does not fit: {seen.error!r}"]


class Performer:
    """Performs cases on one site."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._benchmark = small_runs.saved_benchmark("soak")
        self._database = Database.objects.get(name="demo")
        env = site.env
        self._browser = Browser.logged_in(
            env["PGPERF_URL"], env["PGPERF_ADMIN_USER"], env["PGPERF_ADMIN_PASSWORD"]
        )

        self._duration_s = self._measure()

    def _measure(self) -> float:
        """Duration of an undisturbed run, seconds."""
        begin = time.monotonic()
        run = small_runs.ask(self._benchmark, self._database)
        await_end(run, TERMINAL_WITHIN_S)
        if fresh(run).status != Run.Status.DONE:
            raise RuntimeError(f"an undisturbed run is {fresh(run).status}: {fresh(run).error}")
        return time.monotonic() - begin

    def perform(self, case: dict[str, Any]) -> dict[str, Any]:
        seen = self._kill_web(case) if case["victim"] == "web" else self._kill(case)
        return {
            **case,
            "status": seen.status,
            "error": seen.error,
            "moment": seen.moment,
            "stored": len(seen.before) * small_runs.BLOCKS // _all_blocks(),
            "terminal_s": seen.terminal_s,
            "orphans": seen.orphans,
            "backends": seen.backends,
            "blocks_lost": len(set(seen.before) - set(seen.after)),
            "again": int((seen.runs, seen.attempt) != (1, 1)),
            "next_done": int(seen.next_status == Run.Status.DONE),
            "wrong": violations(seen),
        }

    # Every victim but the web process

    def _kill(self, case: dict[str, Any]) -> Observation:
        victim, share = case["victim"], case["share"]
        run = small_runs.ask(self._benchmark, self._database)
        if victim == "client":
            run = self._await_client(run, share * self._duration_s)
        else:
            time.sleep(share * self._duration_s)
        moment, before = _moment(run), blocks_of(run)
        extra = self._kill_victim(victim, case["which"], run)
        begin = time.monotonic()
        if victim in PARTS:
            self._restart(victim, case, run)
        return self._observe(victim, run, moment, before, begin, extra)

    def _await_client(self, run: Run, after_s: float) -> Run:
        """Wait `after_s` from the run's first client on, and return the run.

        If the clients end sooner, try again with a new run and half of the delay.
        """
        while True:
            await_true(lambda: bool(self._site.clients()) or is_over(run), _VICTIM_WITHIN_S)  # noqa: B023
            time.sleep(after_s)
            if self._site.clients() or after_s < _EARLY_S:
                return run
            after_s /= 2
            run = small_runs.ask(self._benchmark, self._database)

    def _kill_victim(self, victim: str, which: float, run: Run) -> list[str]:
        if victim in PARTS:
            self._site.kill(victim)
            return []
        candidates = self._candidates(victim, run)
        if candidates:
            kill_and_await(candidates[int(which * len(candidates))])
        return [] if candidates else [f"there was no {victim} to kill"]

    def _candidates(self, victim: str, run: Run) -> list[int]:
        """The processes to choose from. Waits for clients: a run has none between two stages."""
        if victim == "client":
            return self._next_clients(run)
        return self._site.pool_children() if victim == "pool child" else query(_backends)

    def _next_clients(self, run: Run) -> list[int]:
        begin = time.monotonic()
        while not (found := self._site.clients()) and not is_over(run):
            if time.monotonic() - begin > _VICTIM_WITHIN_S:
                break
            time.sleep(_POLL_S)
        return found

    def _restart(self, victim: str, case: dict[str, Any], run: Run) -> None:
        time.sleep(case["restart_s"])
        if victim == "worker" and case["alone"]:  # only the page can notice the loss
            await_true(lambda: shown(run)["status"] != Run.Status.RUNNING, TERMINAL_WITHIN_S)
        self._site.restart(victim)

    def _observe(
        self,
        victim: str,
        run: Run,
        moment: str,
        before: list[tuple[str, int]],
        begin: float,
        extra: list[str],
    ) -> Observation:
        await_end(run, TERMINAL_WITHIN_S - (time.monotonic() - begin))
        terminal_s = time.monotonic() - begin if is_over(run) else -1.0
        orphans, backends = small_runs.leftovers(self._site)
        following = small_runs.smallest(self._benchmark, self._database)
        await_end(following, _NEXT_WITHIN_S)
        ended = fresh(run)
        return Observation(
            victim, ended.status, ended.error, moment, round(terminal_s, 2), ended.attempt, 1, before, blocks_of(run),
            orphans, backends, fresh(following).status, extra,
        )  # fmt: skip

    # The web process: the kill may interrupt the request itself

    def _kill_web(self, case: dict[str, Any]) -> Observation:
        token = uuid.uuid4().hex
        answers: list[int] = []
        click = threading.Thread(target=self._click, args=(token, answers))
        click.start()
        time.sleep(case["click_s"])
        found = query(lambda: Run.objects.filter(request_token=token).first())
        moment = _moment(found) if found else "before the run was stored"
        before = blocks_of(found) if found else []
        self._site.kill("web")
        begin = time.monotonic()
        click.join()
        time.sleep(case["restart_s"])
        self._site.restart("web")
        self._click(token, answers)  # a user who got no answer clicks again
        run = query(lambda: Run.objects.get(request_token=token))
        extra = (
            []
            if answers and set(answers) == {run.pk}
            else [f"the clicks led to runs {answers}, not {run.pk}"]
        )
        seen = self._observe("web", run, moment, before, begin, extra)
        seen.runs = query(lambda: Run.objects.filter(request_token=token).count())
        return seen

    def _click(self, token: str, answers: list[int]) -> None:
        try:
            answers.append(self._browser.start(self._benchmark.pk, self._database.pk, token).run_id)
        except OSError:
            pass  # the web process was killed before it answered
        except Exception as error:
            if "http.client" not in type(error).__module__:
                raise


def _moment(run: Run) -> str:
    now = fresh(run)
    return f"{now.status}: {now.message}" if now.message else str(now.status)


def _all_blocks() -> int:
    """Variants and the two of the control pair, times blocks."""
    return (len(small_runs.LAYERS) * len(small_runs.ROUTES) + 2) * small_runs.BLOCKS


def _backends() -> list[int]:
    """PIDs of the backends of pgperf's clients, or of all the site's backends if there are none."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
            " ORDER BY application_name LIKE 'pgperf-%' DESC, backend_start, pid"
        )
        backends = [row[0] for row in cursor.fetchall()]
        cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'pgperf-%'")
        ours = int(cursor.fetchone()[0])
    return backends[:ours] or backends
