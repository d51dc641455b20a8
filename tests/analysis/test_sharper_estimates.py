"""The estimators that were tried for narrower intervals, on noise that slices share."""

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import sharper_estimates as sharper
from benchmarks.machine_noise import Slots
from pgperf.analysis.samples import BLOCKS, Sample, interval, sample_of


def draw(**machine: float) -> sharper.Slices:
    scenario = replace(sharper.Scenario("a machine", bias=0.0), **machine)
    return scenario.draw(np.random.default_rng(1), 3)


@pytest.mark.parametrize(
    ("lag_s", "measured"), [(0.07, 0.69), (0.15, 0.57), (0.22, 0.51), (0.36, 0.43), (1.24, 0.19)]
)
def test_the_simulated_noise_has_the_measured_correlations(lag_s: float, measured: float) -> None:
    found = Slots(2, lag_s, 0.05).correlations()
    assert found[0, 0] == pytest.approx(1)
    assert found[0, 1] == pytest.approx(measured, abs=0.05)


@given(st.integers(2, 60), st.floats(0.02, 0.3), st.floats(0.1, 1.0))
def test_noise_can_be_drawn_for_any_slots(count: int, slot_s: float, part: float) -> None:
    assert np.linalg.eigvalsh(Slots(count, slot_s, part * slot_s).correlations()).min() > 0


def test_client_and_server_processors_differ() -> None:
    client, server = Slots(5, 0.07, 0.05).processors(np.random.default_rng(1), 4000)
    assert np.corrcoef(client[:, 0], server[:, 0])[0, 1] == pytest.approx(0.4, abs=0.06)


@given(st.integers(6, 14), st.integers(0, 10_000))
def test_intervals_are_those_of_a_run(blocks: int, seed: int) -> None:
    values = np.random.default_rng(seed).standard_t(2, (1, blocks, 1))
    low, high = sharper.intervals(values)
    own = interval(Sample(BLOCKS, values.ravel(), blocks))
    assert (low.item(), high.item()) == pytest.approx((own.low, own.high))


def test_todays_estimates_are_those_of_a_run() -> None:
    slices = draw()
    found = sharper.today(slices)
    for at, (one, other) in enumerate(sharper.PAIRS.T):
        ratios = list(slices.logs[:, :, one] - slices.logs[:, :, other])
        assert found[:, at] == pytest.approx(sample_of(ratios).values)


def test_a_value_has_its_place_in_time() -> None:
    slices = draw()
    assert slices.in_time(slices.slots)[0].tolist() == list(range(slices.count))
    assert (slices.by_variant(slices.in_time(slices.logs)) == slices.logs).all()


@pytest.mark.parametrize("estimator", sharper.ESTIMATORS)
def test_a_speed_that_all_slices_share_changes_no_estimate(estimator: str) -> None:
    slices = draw()
    estimate = sharper.ESTIMATORS[estimator]
    faster = replace(slices, logs=slices.logs + 0.3)
    assert estimate(faster) == pytest.approx(estimate(slices), abs=1e-9)


@pytest.mark.parametrize("estimator", ["GLS, 0.8", "neighbours, 0.1 s"])
def test_neighbours_tell_a_smooth_speed(estimator: str) -> None:
    slices = draw(scatter=0.01)
    wave = np.sin(np.arange(slices.count) / 12) * np.ones((len(slices.logs), 1))
    slices = replace(slices, logs=slices.logs + 0.2 * slices.by_variant(wave))
    own, base = (np.std(sharper.ESTIMATORS[name](slices)) for name in (estimator, "today"))
    assert own < 0.75 * base


def test_a_slice_does_not_predict_itself() -> None:
    slices = draw()
    for weights in (sharper._kriging(slices, 0.8), sharper._local(slices, 0.1, 1.0)):
        assert np.diag(weights) == pytest.approx(0, abs=1e-12)


def test_the_slices_of_a_real_run_are_read(tmp_path: Path) -> None:
    slices, path = draw(rounds=2), tmp_path / "raw.csv"
    names = (
        "layer",
        "route",
        "control",
        "block",
        "round",
        "us_per_op",
        "started_ns",
        "elapsed_ns",
        "steal_ns",
    )
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(names)
        for at, us in np.ndenumerate(np.exp(slices.logs)):
            of = sharper._plan().variants[at[2]]
            began = int(1e9 * (at[0] * 100 + slices.slots[at] * 0.07))
            rows.writerow([of.layer, of.route, of.control, *at[:2], us, began, 70_000_000, 0])
    found = sharper.read(path)
    assert found.logs == pytest.approx(slices.logs)
    assert (found.slots == slices.slots).all()
    assert found.slot_s == pytest.approx(0.07, rel=1e-6)


def test_an_estimator_passes_only_if_it_holds_everywhere() -> None:
    good, wide, biased = (sharper.Cell(*cell) for cell in (
        (0.95, 0.01, False, 0.8), (0.95, 0.01, False, 1.1), (0.95, 0.01, True, 0.8)
    ))  # fmt: skip
    today = sharper.Cell(0.95, 0.01, False, 1.0)
    for bad in (wide, biased):
        found = {of: dict.fromkeys(sharper.ESTIMATORS, good) | {"today": today} for of in sharper.SCENARIOS}
        found[sharper.SCENARIOS[0]]["GLS, 0.4"] = bad
        assert "GLS, 0.8" in sharper.passing(found)
        assert "GLS, 0.4" not in sharper.passing(found)


def test_a_mean_error_that_chance_does_not_make_is_a_bias() -> None:
    errors = np.random.default_rng(1).normal(size=(60, len(sharper.PAIRS.T)))
    assert not sharper._is_biased(errors)
    errors[:, 3] += 1
    assert sharper._is_biased(errors)


def test_no_linear_estimate_beats_its_limit() -> None:
    assert 0.7 < sharper.limit(sharper.NOISY) < 1
