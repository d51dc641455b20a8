"""benchmarks.cpu_gauge: readings of windows, the correction, and an offset that its bar shows."""

import math
from typing import Any

import numpy as np
import pytest

from benchmarks.cpu_gauge import Slices, _print_offsets, all_of, corrected, slices_of

MS = 1_000_000
SAMPLE = np.dtype([("at_ns", "<u8"), ("work_ns", "<u8")])


def samples(*pairs: tuple[int, int]) -> np.ndarray:
    return np.array([(at_ms * MS, work_ns) for at_ms, work_ns in pairs], dtype=SAMPLE)


def row(**fields: Any) -> dict[str, str]:
    made = {"label": "libpq · socket", "block": 0, "round": 2, "us_per_op": 60.0}
    times = {"started_ns": 100 * MS, "elapsed_ns": 70 * MS, "window_ns": 50 * MS}
    return {name: str(value) for name, value in {**made, **times, **fields}.items()}


def test_a_reading_is_the_mean_of_the_samples_in_the_window_at_the_end_of_the_slice() -> None:
    clients = samples((110, 999), (121, 400), (140, 500), (171, 999))
    server = samples((130, 300))
    found = slices_of([row()], [clients, server])
    assert found.readings.tolist() == [[math.log(450), math.log(300)]]
    assert (found.rounds.tolist(), found.times.tolist()) == ([2], [math.log(60)])


def test_a_slice_that_a_gauge_missed_is_left_out() -> None:
    found = slices_of([row(), row(started_ns=500 * MS)], [samples((130, 400)), samples((130, 300))])
    assert len(found.times) == 1


def made(offset: float = 0.0, seed: int = 1, blocks: int = 7, rounds: int = 7) -> Slices:
    """Two variants whose times follow two readings; those of the second are `offset` higher."""
    rng = np.random.default_rng(seed)
    names = np.repeat(["django_orm · socket", "libpq · socket"], blocks * rounds)
    places = [np.tile(part, 2) for part in np.divmod(np.arange(blocks * rounds), rounds)]
    speeds = rng.normal(0, 0.2, (len(names), 2))
    times = speeds @ [0.7, 0.2] + rng.normal(0, 0.01, len(names))
    readings = speeds + offset * (names == "libpq · socket")[:, None]
    return Slices(names, *places, times, readings)


def test_what_follows_the_readings_is_taken_out() -> None:
    slices = made()
    assert np.std(corrected(slices)) < 0.1 * np.std(slices.times)


def test_readings_that_do_not_move_correct_nothing() -> None:
    slices = made()
    still = Slices(slices.variants, slices.blocks, slices.rounds, slices.times, 0.001 * slices.readings)
    assert corrected(still) == pytest.approx(slices.times, abs=0.02)


@pytest.mark.parametrize(("offset", "fair"), [(0.0, True), (0.5, False)])
def test_readings_that_depend_on_the_variant_are_unfair(offset: float, fair: bool) -> None:
    assert _print_offsets(all_of([made(offset), made(offset, seed=2)])) is fair


def test_the_blocks_of_several_runs_stay_apart() -> None:
    assert sorted(set(all_of([made(), made()]).blocks)) == list(range(14))
