"""What load hosts cost the site's database and the owner of a run, for docs/scale.md.

    python -m benchmarks.load_host_costs [--rounds 50] [--quick]

One row after the other on an embedded PostgreSQL: a question for an order, an order, an answer with
the durations of a round, a look at all of it by the owner, and a dozen questions for the time. The
round has 8 slices of 4 clients with 2,000 operations each. The last columns multiply: what the
owner does for a round of 4, 16 and 64 hosts, beside the slices. The bar: 4 hosts take 2 s at most
(quick: 4 s).
"""

import os
import time
from collections.abc import Callable
from statistics import median
from typing import Any, NamedTuple

import django
import numpy as np

from benchmarks.example_site import ROOT, manage
from benchmarks.options import ScriptParser, run_script
from example.stack.stack import Stack

SLICES, CLIENTS, OPERATIONS = 8, 4, 2_000
HOSTS = (4, 16, 64)
BAR_S, QUICK_BAR_S = 2.0, 4.0


class Cost(NamedTuple):
    """Seconds each time, and how often the owner does it in a round of so many hosts."""

    name: str
    seconds: float
    times: Callable[[int], int]


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
    return _verdict(costs, sizes, QUICK_BAR_S if options.quick else BAR_S)


def _measured(rounds: int) -> tuple[list[Cost], dict[str, float]]:
    from pgperf.load.rows import ROWS, touch  # after django.setup()
    from pgperf.runner import host_slices
    from pgperf.runs import database_clock

    row, worker = _row(), "load@x"
    recorded = [_slice(at) for at in range(SLICES)]
    lines, packed = host_slices.pack(recorded)
    data: dict[str, Any] = {"slices": lines, "clock": {"ns": 0, "error_ns": 1}}
    order = {"slices": [[at, "x" * 250] for at in range(SLICES)]}
    rows = ROWS.all().filter(pk=row)
    number = ROWS.order(row, order)
    clocks = [database_clock.offset(rows) for _ in range(rounds)]

    def answer() -> None:
        ROWS.answer(row, worker, number, data, packed)

    answer()
    costs = [
        Cost("write an order", _seconds(rounds, lambda: ROWS.order(row, order)), lambda hosts: hosts),
        Cost("ask for an order (host)", _seconds(rounds, lambda: ROWS.poll(row, worker)), lambda _hosts: 0),
        Cost("a sign of life (host)", _seconds(rounds, lambda: touch(row, worker)), lambda _hosts: 0),
        Cost("pack an answer (host)", _seconds(rounds, lambda: host_slices.pack(recorded)), lambda _hosts: 0),
    ]
    number = int(rows.values_list("order_number", flat=True).get())
    costs += [
        Cost("write an answer (host)", _seconds(rounds, answer), lambda _hosts: 1),
        Cost("read an answer", _seconds(rounds, lambda: ROWS.answered(row, number)), lambda hosts: hosts),
        Cost("unpack it", _seconds(rounds, lambda: host_slices.unpack(lines, packed)), lambda hosts: hosts),
        Cost(
            "lay clocks beside one another",
            _seconds(rounds, lambda: database_clock.offset(rows)),
            lambda _h: 1,
        ),
    ]
    errors = [each.error_ns / 1e6 for each in clocks]
    return costs, {
        "bytes of an answer": len(packed),
        "ms of clock error, each side": median(errors),
        "ms of clock error, worst": max(errors),
    }


def _row() -> int:
    """A row of a run under way, which a host has taken."""
    from pgperf.db.now import Now
    from pgperf.load.rows import ROWS, open_for
    from pgperf.models import Run

    run = Run.objects.create(
        definition={}, requested_at=Now(), heartbeat_at=Now(), status=Run.Status.RUNNING, attempt=1
    )
    row = open_for(run, "x", "pgperf-load-x")
    assert row is not None
    ROWS.claim(row, "load@x")
    Run.objects.filter(pk=run.pk).update(heartbeat_at=Now())
    return row


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


def _verdict(costs: list[Cost], sizes: dict[str, float], bar_s: float) -> int:
    print(f"{'step':<32} {'ms':>8} " + " ".join(f"{hosts:>6} hosts" for hosts in HOSTS))
    for cost in costs:
        shares = " ".join(f"{1e3 * cost.seconds * cost.times(hosts):>9,.1f} ms" for hosts in HOSTS)
        print(f"{cost.name:<32} {1e3 * cost.seconds:>8.2f} {shares}")
    totals = {hosts: sum(cost.seconds * cost.times(hosts) for cost in costs) for hosts in HOSTS}
    print(f"{'a round beside its slices':<41} " + " ".join(f"{1e3 * s:>9,.0f} ms" for s in totals.values()))
    for name, value in sizes.items():
        print(f"{name:<32} {value:>10,.2f}")
    held = totals[HOSTS[0]] <= bar_s
    print("verdict: " + ("the bar holds" if held else "the bar does NOT hold"))
    return 0 if held else 1


if __name__ == "__main__":
    run_script(main)
