"""Simulated comparisons with known answers: how often an interval has the truth, and how often 5 %
is seen.
"""

import numpy as np
import pytest

from benchmarks.coverage import (
    WHOLE_RUNS,
    Scenario,
    TwoRuns,
    chosen,
    pooled,
    simulate,
    simulate_figures,
    simulate_runs,
)
from pgperf.analysis.outcome import classify
from pgperf.analysis.paired_comparisons import Measurements
from pgperf.core.records import Variant

from .synthetic import blocks, variant

TRIALS = 1000
#: Three standard errors of a share near 95 % in so many trials.
SLACK = 0.021


@pytest.mark.parametrize("bias", [0.0, 0.01, 0.02])
@pytest.mark.parametrize(("count", "rounds"), [(6, 2), (6, 5), (3, 10)])
def test_a_a_intervals_cover(count: int, rounds: int, bias: float) -> None:
    found = simulate(Scenario(count, rounds, bias), TRIALS, {"chosen": chosen})["chosen"]
    assert found.coverage >= 0.95 - SLACK


def test_one_block_covers_what_its_processes_do() -> None:
    assert simulate(Scenario(1, 20, 0.0), TRIALS, {"chosen": chosen})["chosen"].coverage >= 0.95 - SLACK


def test_strays_do_not_break_it() -> None:
    assert simulate(Scenario(6, 5, 0.01, 0.1), TRIALS, {"chosen": chosen})["chosen"].coverage >= 0.95 - SLACK


def test_pooling_the_rounds_would_not_cover() -> None:
    """Why blocks are the sample: two processes of one program differ for as long as they live."""
    assert simulate(Scenario(6, 5, 0.02), TRIALS, {"pooled": pooled})["pooled"].coverage < 0.85


@pytest.mark.parametrize(
    "title",
    [
        "a route that varies by 10 %, heavy tails",
        "a quarter missing, a route that varies",
        "slices share 20 % of noise",
    ],
)
def test_the_figures_that_are_shown_cover(title: str) -> None:
    scenario = next(each for each in WHOLE_RUNS if each.title == title)
    for name, cell in simulate_figures(scenario, 60).items():
        assert cell.coverage >= 0.95 - 2 * SLACK, name


@pytest.mark.parametrize("blocks", [(10, 10), (3, 10)])
def test_two_runs_compare_over_libpq_on_whatever_machine(blocks: tuple[int, int]) -> None:
    times, over = simulate_runs(TwoRuns(blocks, machine=0.1), TRIALS)
    assert over.coverage >= 0.95 - SLACK
    assert times.coverage < 0.7, "their times tell of the machine"


def test_two_runs_on_a_machine_that_stays_compare_by_their_times() -> None:
    times, _over = simulate_runs(TwoRuns((7, 7), machine=0.0), TRIALS)
    assert times.coverage >= 0.95 - SLACK


def test_five_per_cent_are_seen_and_nothing_is_not() -> None:
    """A small run as a whole: a drifting machine, biased processes, one pair 5 % apart and one not
    at all.
    """
    rng = np.random.default_rng(11)
    seen, false = 0, 0
    for _ in range(60):
        words = _small_run(rng)
        seen += words[0] == "differs"
        false += words[1] == "differs"
    assert seen >= 57
    assert false <= 1


def _small_run(rng: np.random.Generator) -> list[str]:
    base, slower, same = variant("libpq"), variant("psycopg"), variant("psycopg2")
    drift = rng.lognormal(0, 0.3, (6, 5))
    bias = {of: rng.lognormal(0, 0.004, 6) for of in (base, slower, same)}

    def times(of: Variant, number: int, round_: int) -> float:
        effect = 1.05 if of == slower else 1.0
        return float(60 * effect * drift[number, round_] * bias[of][number] * rng.lognormal(0, 0.01))

    measured = Measurements(blocks([base, slower, same], 6, 5, times))
    comparisons = [measured.paired(of, base) for of in (slower, same)]
    return [outcome.word for outcome in classify([found.log.at for found in comparisons if found])]
