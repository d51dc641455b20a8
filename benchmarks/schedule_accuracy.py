"""How late operations at a given rate begin, by layer: intended against real start.

    python -m benchmarks.schedule_accuracy [--quick] [--rounds N] [--slot-s N] [--rate N]

One connection of each layer in `SIMPLE` and `EXTENDED` sends SELECT 1 at the same rate, with constant
gaps. The layer http requests a page that costs nothing, over a new connection each time. The layers
take turns in random order. The rate leaves every client idle between two operations, so an operation
waits only for the client's timer and the machine. The bars, at the 99th percentile of all slots
together: 100 µs for the C client, 1 ms for the Python clients.

The row "timer alone" has no bar: a loop in C that only sleeps until each moment, on the CPUs of the C
client (`bare_timer.c`). No client is on time where that loop is late.
"""

import argparse
import os
import random
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks import web_clients
from benchmarks.c_program import compiled
from benchmarks.options import ScriptParser, run_script
from benchmarks.resident import on_cpus_of, resident
from example.stack import gunicorn
from example.stack.stack import Stack
from pgperf.catalog.light import LIGHT
from pgperf.core import protocol
from pgperf.core.layers import LAYERS
from pgperf.core.records import Definition
from pgperf.runner.client_group import ClientGroup
from pgperf.runner.timed_slice import measure

ROOT = Path(__file__).resolve().parent.parent
TIMER = Path(__file__).with_name("bare_timer.c")
SIMPLE = (
    "libpq", "psycopg2", "psycopg", "psycopg_async", "psycopg_async_uvloop", "django_cursor", "django_orm",
    "django_orm_async",
)  # fmt: skip
EXTENDED = ("asyncpg", "asyncpg_uvloop")  # they have no simple statements
C_BAR_US, PYTHON_BAR_US = 100.0, 1000.0
_S = 1_000_000_000
_PERCENTILES = (50, 90, 99, 99.9)


class BareTimer(NamedTuple):
    """The program that only sleeps, at the rate of the clients for as long as a slot."""

    program: str
    rate: float
    slot_s: int

    def late_us(self, group: ClientGroup) -> np.ndarray:
        """By how much it woke up late each time, on the CPUs of the group's client."""
        gap_ns, count = round(_S / self.rate), round(self.rate * self.slot_s)
        with on_cpus_of(group):
            done = subprocess.run([self.program, str(gap_ns), str(count)], check=True, capture_output=True)
        return np.frombuffer(done.stdout, dtype=np.uint64) / 1000


def main() -> int:
    options = _options()
    simple = Definition("schedule-accuracy", (LIGHT,), layers=SIMPLE, routes=("socket",))
    extended = replace(simple, layers=EXTENDED, modes=("extended",))
    with (
        Stack(ROOT / ".stack" / "schedule-accuracy", parts=["postgres"], keep=False) as stack,
        _site(stack.env),
        _page(stack) as page,
        compiled(TIMER) as program,
        resident(stack, simple, "schedule") as groups,
        resident(stack, extended, "schedule-extended") as others,
    ):
        timer = BareTimer(program, options.rate, options.slot_s)
        lags, alone_us = _lags([*groups, *others, page], timer, options)
    print(f"{'layer':<20}" + "".join(f"{f'p{each:g}':>10}" for each in _PERCENTILES) + f"{'bar':>10}")
    passed = [_row(layer, lag_us) for layer, lag_us in lags.items()]
    _print_row("timer alone", alone_us, "–")
    print(f"verdict: the bars {'hold' if all(passed) else 'do NOT hold' + _why(alone_us)}")
    return 0 if all(passed) else 1


def _why(alone_us: np.ndarray) -> str:
    """What the machine has to do with it."""
    late_us = float(np.percentile(alone_us, 99))
    return "" if late_us <= C_BAR_US else f"; this machine's timer alone is {late_us:,.0f} µs late"


def _options() -> argparse.Namespace:
    parser = ScriptParser(__doc__)
    parser.add_size("--rounds", "slots of each layer", full=10, quick=2)
    parser.add_size("--slot-s", "length of a slot in whole seconds", full=5, quick=1)
    parser.add_argument("--rate", type=float, default=200.0, help="operations per second (200)")
    return parser.options()


@contextmanager
def _site(env: dict[str, str]) -> Iterator[None]:
    """Clients of Django's layers set up the example site, which reads the stack's addresses."""
    before = dict(os.environ)
    os.environ.update({"DJANGO_SETTINGS_MODULE": "example.settings", **env})
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextmanager
def _page(stack: Stack) -> Iterator[ClientGroup]:
    """A client of the layer http, and the server of its page."""
    cpu, others = web_clients.processors()
    port = web_clients.free_port()
    part = gunicorn.part(stack.place, "schedule_page", dict(os.environ), port)
    program, _wsgi, *options = part.argv
    part = replace(part, argv=[program, "benchmarks.empty_page", *options])
    try:
        part.start()
        web_clients.place([part], others)
        with web_clients.connected(f"http://127.0.0.1:{port}", "/", "per_operation", 1, cpu) as group:
            yield group
    finally:
        part.stop()


def _lags(
    groups: Sequence[ClientGroup], timer: BareTimer, options: argparse.Namespace
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """The lag of each operation by layer, and that of the timer alone, µs."""
    found: dict[str, list[np.ndarray]] = {group.variant.layer: [] for group in groups}
    request = protocol.Slice(
        seq=1, lead_in_ns=_S // 4, window_ns=options.slot_s * _S, rate=options.rate, schedule="constant"
    )
    alone = []
    for _ in range(options.rounds):
        for group in random.sample([*groups, None], len(groups) + 1):
            if group is None:
                alone.append(timer.late_us(groups[0]))
                continue
            window = measure(group, request, 0, 0)[1]
            found[group.variant.layer].append(window.by_phase()["lag"] / 1000)
    return {layer: np.concatenate(slots) for layer, slots in found.items()}, np.concatenate(alone)


def _row(layer: str, lag_us: np.ndarray) -> bool:
    bar_us = PYTHON_BAR_US if LAYERS[layer].program else C_BAR_US
    _print_row(layer, lag_us, f"{bar_us:.0f}")
    return bool(np.percentile(lag_us, 99) <= bar_us)


def _print_row(name: str, lag_us: np.ndarray, bar: str) -> None:
    said = "".join(f"{us:>10.0f}" for us in np.percentile(lag_us, _PERCENTILES))
    print(f"{name:<20}{said}{bar:>10} µs of {len(lag_us)} operations")


if __name__ == "__main__":
    run_script(main)
