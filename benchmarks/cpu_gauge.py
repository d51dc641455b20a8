"""A gauge of the CPUs' speed beside the slices: what it explains, and whether it is fair.

    python -m benchmarks.cpu_gauge [--runs 2] [--quick]

The script runs `orm-overhead --quick`. A small program on each CPU times the same piece of work
every 5 ms meanwhile. Each slice is set against the mean reading of the clients' and of the server's
CPU in its window. The script prints

- the scatter of the slices of a variant within a block, before and after a regression on both
  readings,
- the half-widths of the comparisons with libpq, from the same slices, before and after,
- how far the readings of each variant are from those of all.

A correction by the gauge has no bias only if the gauge reads alike beside every variant. The bar:
none is further off than chance explains, at 99 % for all of them together, by their differences
block by block. `--quick`: one run of two layers on one route, under a minute.
"""

import argparse
import csv
import io
import math
import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import stats

from benchmarks.c_program import compiled
from benchmarks.example_site import ROOT, manage, run_benchmark
from benchmarks.options import ScriptParser, run_script
from example.stack.stack import Stack
from pgperf.analysis.number_text import in_percent
from pgperf.analysis.paired_statistics import hodges_lehmann
from pgperf.analysis.samples import interval, sample_of

SOURCE = Path(__file__).with_suffix(".c")
_SAMPLE = np.dtype([("at_ns", "<u8"), ("work_ns", "<u8")])
_SHORT = ("--layers=libpq,django_orm", "--routes=socket", "--blocks=6", "--rounds=2")
_CONFIDENCE = 0.99
#: The gauge's own scatter: where it hardly moves, it corrects nothing.
_OWN_SCATTER = 0.01
_BASELINE = "libpq · socket"


@dataclass(frozen=True)
class Slices:
    """Of one run, a row each: variant, block, round, logarithm of the time per operation, and of both
    readings (clients' CPU, server's CPU).
    """

    variants: np.ndarray
    blocks: np.ndarray
    rounds: np.ndarray
    times: np.ndarray
    readings: np.ndarray

    def within_blocks(self, values: np.ndarray) -> np.ndarray:
        """The values less their mean in the variant's block."""
        found = values.copy()
        for variant in set(self.variants):
            for block in set(self.blocks):
                own = (self.variants == variant) & (self.blocks == block)
                found[own] -= found[own].mean(axis=0) if own.any() else 0
        return found


def main() -> int:
    options = _options()
    with Stack(ROOT / ".stack" / "cpu-gauge", keep=False) as stack:
        manage(stack.env, "set_up_site")
        with compiled(SOURCE) as program:
            runs = [
                _run(stack.env, program, options.quick) for _ in range(1 if options.quick else options.runs)
            ]
    for number, slices in enumerate(runs, 1):
        _print_widths(number, slices)
    held = _print_offsets(all_of(runs))
    print("verdict: " + ("the bar holds" if held else "the bar does NOT hold"))
    return 0 if held else 1


def _options() -> argparse.Namespace:
    parser = ScriptParser(__doc__)
    parser.add_argument("--runs", type=int, default=2)
    return parser.options()


def _run(stack_env: dict[str, str], program: str, quick: bool) -> Slices:
    words = ["orm-overhead", "--quick", "--precision=0", "--diagnostic-ms=0", *(_SHORT if quick else ())]
    with _gauged(program) as samples:
        run = run_benchmark(stack_env, *words)["run"]
    places = run["environment"]["placement"]
    if places["placement"] != "apart":
        raise SystemExit(f"verdict: cannot measure: {places['note']}")
    raw = manage(stack_env, "pgperf", "export", str(run["id"]), "--raw")
    cpus = [samples[cpu] for cpu in (*places["clients"][:1], *places["server"][:1])]
    return slices_of([*csv.DictReader(io.StringIO(raw))], cpus)


@contextmanager
def _gauged(program: str) -> Iterator[dict[int, np.ndarray]]:
    """The samples of each CPU; they are there when the context has ended."""
    found: dict[int, np.ndarray] = {}
    with tempfile.TemporaryDirectory() as folder:
        files = {cpu: Path(folder, str(cpu)) for cpu in sorted(os.sched_getaffinity(0))}
        processes = [_start(program, cpu, file) for cpu, file in files.items()]
        try:
            yield found
        finally:
            for process in processes:
                process.kill()
                process.wait()
            found.update({cpu: np.fromfile(file, dtype=_SAMPLE) for cpu, file in files.items()})


def _start(program: str, cpu: int, file: Path) -> "subprocess.Popen[bytes]":
    with file.open("wb") as output:
        process = subprocess.Popen([program], stdin=subprocess.DEVNULL, stdout=output)
    os.sched_setaffinity(process.pid, {cpu})
    return process


def slices_of(rows: Sequence[Mapping[str, str]], cpus: Sequence[np.ndarray]) -> Slices:
    """The slices of a raw export, with the readings in their windows; without those that a gauge
    missed.
    """
    readings = np.array([[_reading(samples, row) for samples in cpus] for row in rows])
    known = np.isfinite(readings).all(axis=1)
    return Slices(
        np.array([row["label"] for row in rows])[known],
        np.array([int(row["block"]) for row in rows])[known],
        np.array([int(row["round"]) for row in rows])[known],
        np.log([float(row["us_per_op"]) for row in rows])[known],
        readings[known],
    )


def _reading(samples: np.ndarray, row: Mapping[str, str]) -> float:
    """The logarithm of the mean reading in the slice's window, which ends with its account."""
    ends_ns = int(row["started_ns"]) + int(row["elapsed_ns"])
    begin, end = np.searchsorted(samples["at_ns"], [ends_ns - int(row["window_ns"]), ends_ns])
    return math.log(samples["work_ns"][begin:end].mean()) if end > begin else math.nan


def corrected(slices: Slices) -> np.ndarray:
    """The logarithms of the times at the run's mean speed, by least squares within blocks."""
    found = slices.times.copy()
    above = slices.readings - slices.readings.mean(axis=0)
    times, readings = slices.within_blocks(slices.times), slices.within_blocks(slices.readings)
    for variant in set(slices.variants):
        own = slices.variants == variant
        moments = readings[own].T @ readings[own] + own.sum() * _OWN_SCATTER**2 * np.eye(readings.shape[1])
        found[own] -= above[own] @ np.linalg.solve(moments, readings[own].T @ times[own])
    return found


def all_of(runs: Sequence[Slices]) -> Slices:
    """The slices of all runs, whose blocks are numbered on."""
    before = np.cumsum([0, *(slices.blocks.max() + 1 for slices in runs)])
    blocks = [slices.blocks + start for slices, start in zip(runs, before, strict=False)]
    parts = [
        [each.variants, own, each.rounds, each.times, each.readings]
        for each, own in zip(runs, blocks, strict=True)
    ]
    return Slices(*map(np.concatenate, zip(*parts, strict=True)))


def _print_widths(number: int, slices: Slices) -> None:
    print(f"run {number}: {len(slices.times)} slices")
    for title, times in (("as they are", slices.times), ("corrected", corrected(slices))):
        scatter = float(np.std(slices.within_blocks(times)))
        width = in_percent(float(np.exp(np.mean(np.log(_half_widths(slices, times))))), 1)
        print(f"  {title:<12} scatter in a block {in_percent(scatter, 1):>7}, half-width {width:>7}")


def _half_widths(slices: Slices, times: np.ndarray) -> list[float]:
    """Of the log ratios to libpq over the first route, of all other variants."""
    found = []
    for variant in sorted(set(slices.variants) - {_BASELINE}):
        pairs = _by_block(slices, times, variant, _BASELINE)
        width = interval(sample_of(pairs)).half_width()
        found += [width] if width else []
    return found


def _by_block(slices: Slices, values: np.ndarray, variant: str, baseline: str) -> list[np.ndarray]:
    """The differences of the rounds that have both, block by block."""
    found = []
    for block in sorted(set(slices.blocks)):
        ours, theirs = (_by_round(slices, values, name, block) for name in (variant, baseline))
        both = [ours[round_] - theirs[round_] for round_ in ours.keys() & theirs.keys()]
        found += [np.array(both)] if both else []
    return found


def _by_round(slices: Slices, values: np.ndarray, variant: str, block: int) -> dict[int, float]:
    own = (slices.variants == variant) & (slices.blocks == block)
    return dict(zip(slices.rounds[own].tolist(), values[own].tolist(), strict=True))


def _print_offsets(slices: Slices) -> bool:
    """How far each variant's readings are from those of all variants of the same block."""
    names = sorted(set(slices.variants))
    limit = stats.t.ppf(1 - (1 - _CONFIDENCE) / (4 * len(names)), len(set(slices.blocks)) - 1)
    print(f"{'readings over those of all':<36} {'clients':>16} {'server':>16}")
    held = True
    for name in names:
        offsets = [_offset(slices, name, role) for role in range(slices.readings.shape[1])]
        print(
            f"  {name:<34} "
            + " ".join(f"{in_percent(mean, 1):>7} ± {in_percent(error, 1):>5}" for mean, error in offsets)
        )
        held = held and all(abs(mean) <= limit * error for mean, error in offsets)
    return held


def _offset(slices: Slices, variant: str, role: int) -> tuple[float, float]:
    """The mean over blocks, and its standard error."""
    readings = slices.readings[:, role]
    found = [
        hodges_lehmann(readings[own & (slices.variants == variant)]) - hodges_lehmann(readings[own])
        for own in (slices.blocks == block for block in sorted(set(slices.blocks)))
    ]
    return float(np.mean(found)), float(np.std(found, ddof=1) / math.sqrt(len(found)))


if __name__ == "__main__":
    run_script(main)
