"""What load hosts cost the site's database and the owner of a run, for docs/scale.md.

    python -m benchmarks.load_host_costs [--rounds 50] [--quick]

First one row after the other on an embedded PostgreSQL: a question for an order, an order, an answer
with the durations of a round, a look at all of it by the owner, and a dozen questions for the time.
The round has 8 slices of 4 clients with 2,000 operations each. The last columns multiply: what the
owner does for a round of 4, 16 and 64 hosts, beside the slices.

Then 4, 16 and 64 hosts (quick: 4 and 16) at the same time, a process for each, beside a single
host: answers that all write at once, questions for an order in a second, the error of the clocks
while all ask for the time, and the joining of what they recorded.

The bars: 4 hosts take 0.25 s at most (quick: 0.5 s), three times what busy CPUs took, and the site's
database answers the questions of 4.
"""

import os
import time
from collections.abc import Callable, Sequence
from functools import partial
from statistics import median
from typing import Any, NamedTuple

import django
import numpy as np

from benchmarks.example_site import ROOT, manage
from benchmarks.options import ScriptParser, run_script
from example.stack.stack import Stack

SLICES, CLIENTS, OPERATIONS = 8, 4, 2_000
HOSTS, QUICK_HOSTS = (4, 16, 64), (4, 16)
BAR_S, QUICK_BAR_S = 0.25, 0.5
#: How often a waiting host asks for an order in a second.
QUESTIONS = 10
_WORKER = "load@x"
_ASKING_S = 1.0


class Cost(NamedTuple):
    """Seconds each time, and how often the owner does it in a round of so many hosts."""

    name: str
    seconds: float
    times: Callable[[int], int]


class Together(NamedTuple):
    """What so many hosts do at the same time."""

    hosts: int
    answers_ms: float
    questions_per_s: float
    clock_ms: float  # the error of one side, the median; and the worst:
    clock_worst_ms: float
    joining_ms: float

    def rows(self, alone: "Together") -> list[tuple[str, str, str]]:
        """Step; what one host takes, or all need; what was measured."""
        return [
            ("all write their answers, ms", f"{alone.answers_ms:.1f} for one", f"{self.answers_ms:,.0f}"),
            (
                "questions for an order a second",
                f"{QUESTIONS * self.hosts:,} needed",
                f"{self.questions_per_s:,.0f} at most",
            ),
            (
                "clock error, each side, ms",
                f"{alone.clock_ms:.2f} for one",
                f"{self.clock_ms:.2f}, worst {self.clock_worst_ms:.2f}",
            ),
            ("the owner joins a round, ms", f"{alone.joining_ms:.1f} for one", f"{self.joining_ms:,.0f}"),
        ]

    def answers_questions(self) -> bool:
        """Does the site's database keep up with what waiting hosts ask?"""
        return self.questions_per_s >= QUESTIONS * self.hosts


def main() -> int:
    parser = ScriptParser(__doc__)
    parser.add_size("--rounds", "how often each step is timed", full=50, quick=10)
    options = parser.options()
    with Stack(ROOT / ".stack" / "load_host_costs", keep=False) as stack:
        manage(stack.env, "set_up_site")
        os.environ.update(stack.env)
        os.environ["DJANGO_SETTINGS_MODULE"] = "example.settings"
        django.setup()
        costs, sizes = _measured(options.rounds)
        rounds = max(3, options.rounds // 5)
        alone = _together(1, rounds)
        together = [_together(hosts, rounds) for hosts in (QUICK_HOSTS if options.quick else HOSTS)]
    return _verdict(costs, sizes, alone, together, QUICK_BAR_S if options.quick else BAR_S)


def _measured(rounds: int) -> tuple[list[Cost], dict[str, float]]:
    from pgperf.load.rows import ROWS, touch  # after django.setup()
    from pgperf.runner import host_slices
    from pgperf.runs import database_clock

    (row,), worker = _rows(1), _WORKER
    recorded = [_slice(at) for at in range(SLICES)]
    lines, packed = host_slices.pack(recorded)
    data: dict[str, Any] = {"slices": lines, "clock": {"ns": 0, "error_ns": 1}}
    order = {"slices": [[at, "x" * 250] for at in range(SLICES)]}
    rows = ROWS.all().filter(pk=row)
    number = ROWS.order(row, order)
    clocks = [database_clock.offset(rows) for _ in range(rounds)]

    def answer() -> None:
        ROWS.answer(row, worker, number, data, packed)

    def poll() -> None:
        _require(ROWS.poll(row, worker))

    def sign() -> None:
        _require(touch(row, worker))

    def seconds(step: Callable[[], object]) -> float:
        _beat()
        return _seconds(rounds, step)

    answer()
    costs = [
        Cost("write an order", seconds(lambda: ROWS.order(row, order)), lambda hosts: hosts),
        Cost("ask for an order (host)", seconds(poll), lambda _hosts: 0),
        Cost("a sign of life (host)", seconds(sign), lambda _hosts: 0),
        Cost("pack an answer (host)", seconds(lambda: host_slices.pack(recorded)), lambda _hosts: 0),
    ]
    number = int(rows.values_list("order_number", flat=True).get())
    costs += [
        Cost("write an answer (host)", seconds(answer), lambda _hosts: 1),
        Cost("read an answer", seconds(lambda: ROWS.answered(row, number)), lambda hosts: hosts),
        Cost("unpack it", seconds(lambda: host_slices.unpack(lines, packed)), lambda hosts: hosts),
        Cost(
            "lay clocks beside one another",
            seconds(lambda: database_clock.offset(rows)),
            lambda _h: 1,
        ),
    ]
    errors = [each.error_ns / 1e6 for each in clocks]
    return costs, {
        "bytes of an answer": len(packed),
        "ms of clock error, each side": median(errors),
        "ms of clock error, worst": max(errors),
    }


def _rows(hosts: int) -> list[int]:
    """The rows of a run under way, which its hosts have taken."""
    from pgperf.db.now import Now
    from pgperf.load.rows import ROWS, open_for
    from pgperf.models import Run

    Run.objects.filter(status=Run.Status.RUNNING).delete()
    run = Run.objects.create(
        definition={}, requested_at=Now(), heartbeat_at=Now(), status=Run.Status.RUNNING, attempt=1
    )
    found = []
    for at in range(hosts):
        row = open_for(run, f"x{at}", f"pgperf-load-x{at}")
        assert row is not None
        ROWS.claim(row, _WORKER)
        ROWS.order(row, {"clock": True})
        found.append(row)
    _beat()
    return found


def _beat() -> None:
    """A heartbeat of the run: without one its rows count as dead, and a question finds nothing."""
    from pgperf.db.now import Now
    from pgperf.models import Run

    Run.objects.filter(status=Run.Status.RUNNING).update(heartbeat_at=Now())


def _require(found: object) -> None:
    if not found:
        raise SystemExit("verdict: cannot measure: a host found no run, which has no recent heartbeat")


def _together(hosts: int, rounds: int) -> Together:
    """So many hosts at the same time."""
    from benchmarks.hosts_at_once import at_once
    from pgperf.runner import host_slices

    lines, packed = host_slices.pack([_slice(at) for at in range(SLICES)])
    data = {"slices": lines, "clock": {"ns": 0, "error_ns": 1}}
    answers = at_once(_rows(hosts), partial(_answer, data, packed), rounds)
    asked = at_once(_rows(hosts), _ask)
    errors_ms = [ns / 1e6 for ns in at_once(_rows(hosts), _clock_error, rounds).found()]
    return Together(
        hosts,
        1e3 * answers.seconds(),
        sum(asked.found()) / asked.seconds(),
        median(errors_ms),
        max(errors_ms),
        1e3 * _joining(hosts, rounds),
    )


def _answer(data: dict[str, Any], packed: bytes, row: int) -> None:
    from pgperf.load.rows import ROWS

    ROWS.answer(row, _WORKER, 1, data, packed)


def _ask(row: int) -> int:
    """How often it asked for an order, without a pause."""
    from pgperf.load.rows import ROWS

    asked, until = 0, time.monotonic() + _ASKING_S
    while time.monotonic() < until:
        _require(ROWS.poll(row, _WORKER))
        asked += 1
    return asked


def _clock_error(row: int) -> int:
    from pgperf.load.rows import ROWS
    from pgperf.runs import database_clock

    return database_clock.offset(ROWS.all().filter(pk=row)).error_ns


def _joining(hosts: int, rounds: int) -> float:
    """Seconds in which the owner makes one window of each slice of a round."""
    from pgperf.core.protocol import Slice
    from pgperf.core.records import Variant
    from pgperf.runner.load_hosts import joined
    from pgperf.runner.slice_window import SliceWindow

    variant = Variant(
        workload="w", layer="libpq", mode="simple", route="tcp", clients=CLIENTS * hosts, connect="persistent",
        placement="apart", hosts=hosts,
    )  # fmt: skip
    recorded = [_slice(at).recorded for at in range(hosts)]
    request = Slice(seq=1, start_ns=10**15, lead_in_ops=1, lead_in_ns=20_000_000, window_ns=150_000_000)

    def join() -> None:
        for _ in range(SLICES):
            SliceWindow.of(request, *joined(variant, recorded))

    return _seconds(rounds, join)


def _slice(seed: int) -> Any:
    """What the clients of a host recorded in a slice: durations as they scatter around 100 µs."""
    from pgperf.core.protocol import SliceReply
    from pgperf.runner.host_slices import CPU_FIELDS, HostSlice
    from pgperf.runner.slice_window import Recorded

    rng = np.random.default_rng(seed)
    durations = [rng.lognormal(11.5, 0.3, OPERATIONS).astype(np.uint64) for _ in range(CLIENTS)]
    replies = [
        SliceReply(
            seq=1, ops=OPERATIONS, rows=OPERATIONS, lead_in_ops=1, first_ns=10**15, user_ns=10**8, sys_ns=10**8,
            capped=False, nbytes=8 * OPERATIONS,
        )
        for _ in durations
    ]  # fmt: skip
    phases = [np.zeros((0, OPERATIONS), dtype=np.uint64) for _ in durations]
    return HostSlice(Recorded(replies, durations, phases), dict.fromkeys(CPU_FIELDS, 10**8))


def _seconds(rounds: int, step: Callable[[], object]) -> float:
    """The median time of a step."""
    times = []
    for _ in range(rounds):
        begin = time.perf_counter()
        step()
        times.append(time.perf_counter() - begin)
    return median(times)


def _verdict(
    costs: list[Cost], sizes: dict[str, float], alone: Together, together: Sequence[Together], bar_s: float
) -> int:
    print(f"{'step':<32} {'ms':>8} " + " ".join(f"{hosts:>6} hosts" for hosts in HOSTS))
    for cost in costs:
        shares = " ".join(f"{1e3 * cost.seconds * cost.times(hosts):>9,.1f} ms" for hosts in HOSTS)
        print(f"{cost.name:<32} {1e3 * cost.seconds:>8.2f} {shares}")
    totals = {hosts: sum(cost.seconds * cost.times(hosts) for cost in costs) for hosts in HOSTS}
    print(f"{'a round beside its slices':<41} " + " ".join(f"{1e3 * s:>9,.0f} ms" for s in totals.values()))
    for name, value in sizes.items():
        print(f"{name:<32} {value:>10,.2f}")
    print(f"\n{'hosts at the same time':<44} {'one, or needed':>18}   measured")
    for each in together:
        for step, expected, measured in each.rows(alone):
            print(f"{each.hosts:>3}: {step:<39} {expected:>18}   {measured}")
    fewest = [each.answers_questions() for each in together if each.hosts == HOSTS[0]]
    held = totals[HOSTS[0]] <= bar_s and all(fewest)
    print("verdict: " + ("the bars hold" if held else "the bars do NOT hold"))
    return 0 if held else 1


if __name__ == "__main__":
    run_script(main)
