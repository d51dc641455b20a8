"""Cost of the timed loop per operation: the real loops around an empty operation.

    python -m benchmarks.loop_cost [--quick] [--pairs N]

Each pair runs the same number of operations in a bare loop and in the clients' loop, in random
order. The clients' loop is pgperf.clients.timed_loop in Python, and pgperf/clients/libpq/timed.c in
C. The difference per operation is the cost of recording. The bar: the upper end of the 99 %
interval is at most 150 ns in Python and 40 ns in C. `--quick`: under a minute; the bar applies to
the centre.
"""

import argparse
import random
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.options import ScriptParser, run_script
from pgperf.analysis.paired_statistics import Estimate, signed_rank_interval
from pgperf.clients import timed_loop
from pgperf.core.protocol import Slice
from pgperf.install.c_client import FLAGS, SOURCE_DIR

# Few enough that most runs end before another process gets their CPU.
PYTHON_OPERATIONS = 5_000
C_OPERATIONS = 20_000
_SOURCES = ("timed.c", "open_loop.c", "schedule.c", "clock.c")
BARS_NS = {"Python": 150.0, "C": 40.0}
CONFIDENCE = 0.99


def main() -> int:
    options = _options()
    measured = {"Python": _measure_python(options.pairs), "C": _measure_c(options.pairs)}
    print(
        f"{'loop':<8} {'bare ns':>9} {'timed ns':>9} {'adds ns':>9} {'99 % interval':>18} {'bar':>6} {'pairs':>6}"
    )
    held = [_row(name, pairs, options.quick) for name, pairs in measured.items()]
    print(f"verdict: the bar {'holds' if all(held) else 'does NOT hold'} ({', '.join(map(_bar, BARS_NS))})")
    return 0 if all(held) else 1


def _options() -> argparse.Namespace:
    parser = ScriptParser(__doc__)
    parser.add_size("--pairs", "pairs of runs in each language", full=1000, quick=200)
    return parser.options()


def _bar(name: str) -> str:
    return f"{name} at most {BARS_NS[name]:.0f} ns"


def _row(name: str, pairs: np.ndarray, quick: bool) -> bool:
    """Print one line of the table; return whether the bar holds.

    `pairs`: ns per operation, columns bare and timed.
    """
    cost: Estimate = signed_rank_interval(pairs[:, 1] - pairs[:, 0], CONFIDENCE)
    bare, timed = np.median(pairs, axis=0)
    interval = "unknown" if cost.low is None or cost.high is None else f"{cost.low:.1f} to {cost.high:.1f}"
    print(
        f"{name:<8} {bare:>9.1f} {timed:>9.1f} {cost.centre:>9.1f} {interval:>18} {BARS_NS[name]:>6.0f} {cost.n:>6}"
    )
    decisive = cost.centre if quick else cost.high
    return decisive is not None and decisive <= BARS_NS[name]


def _measure_python(pairs: int) -> np.ndarray:
    stamps = timed_loop.new_stamps()
    request = Slice(seq=1, lead_in_ops=0, lead_in_ns=0, count=PYTHON_OPERATIONS)

    def timed() -> float:
        measured = timed_loop.run_slice(_operation, request, stamps)
        return float(np.frombuffer(measured.durations, "<u8").mean())

    sides = (_bare, timed)
    measured = np.empty((pairs, 2))
    for row in measured:
        for column in random.sample((0, 1), 2):
            row[column] = sides[column]()
    return measured


def _operation() -> int:
    return 1


def _bare() -> float:
    """ns per operation of a loop that only calls the operation."""
    operation = _operation
    before = time.monotonic_ns()
    for _ in range(PYTHON_OPERATIONS):
        operation()
    return (time.monotonic_ns() - before) / PYTHON_OPERATIONS


def _measure_c(pairs: int) -> np.ndarray:
    if not shutil.which("cc"):
        raise SystemExit("verdict: cannot measure: no C compiler; apt install gcc libc6-dev")
    with tempfile.TemporaryDirectory(prefix="pgperf-") as folder:
        program = Path(folder, "loop_cost")
        sources = [Path(__file__).with_suffix(".c"), *(SOURCE_DIR / name for name in _SOURCES)]
        compiling = ["cc", *FLAGS, f"-I{SOURCE_DIR}", "-o", program, *sources, "-lm"]
        subprocess.run([str(part) for part in compiling], check=True)
        running = [str(program), str(pairs), str(C_OPERATIONS)]
        output = subprocess.run(running, check=True, capture_output=True, text=True).stdout
    return np.array([[float(field) for field in line.split()] for line in output.splitlines()])


if __name__ == "__main__":
    run_script(main)
