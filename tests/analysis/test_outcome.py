import math

import numpy as np
import pytest

from pgperf.analysis.outcome import MARGIN, IntervalAt, classify
from pgperf.analysis.paired_statistics import Estimate
from pgperf.analysis.samples import interval, sample_of


def blocks(centre: float, spread: float) -> IntervalAt:
    """Six blocks, evenly spread around a log ratio."""
    sample = sample_of(
        [np.array([centre + spread * step]) for step in (-1.25, -0.75, -0.25, 0.25, 0.75, 1.25)]
    )
    return lambda confidence: interval(sample, confidence)


def words(*family: IntervalAt) -> list[str]:
    return [outcome.word for outcome in classify(family)]


@pytest.mark.parametrize(
    ("centre", "spread", "word"),
    [
        (0.05, 0.001, "differs"),
        (-0.05, 0.001, "differs"),
        (0.0, 0.001, "equivalent"),
        (0.005, 0.001, "equivalent"),
        (0.01, 0.001, "inconclusive"),
        (0.0, 0.05, "inconclusive"),
        (0.02, 0.05, "inconclusive"),
    ],
)
def test_the_word_of_each_outcome(centre: float, spread: float, word: str) -> None:
    assert words(blocks(centre, spread)) == [word]


def test_the_margin_is_the_same_in_both_directions() -> None:
    for centre in (MARGIN * 0.9, MARGIN * 1.1, 0.0):
        assert words(blocks(centre, 1e-4)) == words(blocks(-centre, 1e-4))


def test_a_family_asks_for_more_than_one_alone() -> None:
    borderline, quiet = blocks(0.03, 0.017), blocks(0.0, 0.001)
    assert words(borderline) == ["differs"]
    assert words(borderline, *[quiet] * 9) == ["inconclusive"] + ["equivalent"] * 9


def test_what_clearly_differs_makes_room_for_the_rest() -> None:
    """Holm, not Bonferroni: nine certain differences leave the tenth the whole 5 %."""
    borderline, certain = blocks(0.03, 0.017), blocks(1.0, 0.001)
    assert words(*[certain] * 9, borderline) == ["differs"] * 10


def test_holm_by_its_definition() -> None:
    """Against the textbook procedure on p values, found by bisection."""
    rng = np.random.default_rng(8)
    family = [blocks(centre, 0.02) for centre in rng.uniform(0, 0.08, 12)]
    p = [_p(at) for at in family]
    expected, failed = [False] * len(p), False
    for rank, index in enumerate(np.argsort(p)):
        failed = failed or p[index] > 0.05 / (len(p) - rank)
        expected[index] = not failed
    assert [word == "differs" for word in words(*family)] == expected
    assert 0 < sum(expected) < len(p)


def _p(at: IntervalAt) -> float:
    low, high = 0.0, 1.0 - 1e-9
    for _ in range(60):
        middle = (low + high) / 2
        bound = at(middle).low
        low, high = (middle, high) if bound is not None and bound > MARGIN else (low, middle)
    return 1 - low


def test_without_bounds_nothing_is_said() -> None:
    outcome = classify([lambda confidence: Estimate(0.5, None, None, 1, 0.0)])[0]
    assert (outcome.word, outcome.mde) == ("inconclusive", None)
    assert classify([]) == []


def test_smallest_effect_had_four_chances_in_five() -> None:
    """Simulated: an effect of the promised size comes out as `differs` in 80 % of the runs."""
    rng = np.random.default_rng(9)
    noise, effect, hits, trials = 0.01, 0.0, 0, 600
    # what the interval promises on average for this noise, then runs with an effect of that size
    promised = [classify([_drawn(rng, 0.0, noise)])[0].mde or 0 for _ in range(trials)]
    effect = math.log1p(float(np.mean(promised)))
    for _ in range(trials):
        hits += classify([_drawn(rng, effect, noise)])[0].word == "differs"
    assert 0.75 < hits / trials < 0.92


def _drawn(rng: np.random.Generator, centre: float, noise: float) -> IntervalAt:
    sample = sample_of(list(rng.normal(centre, noise, (6, 1))))
    return lambda confidence: interval(sample, confidence)


def test_a_smallest_effect_beyond_any_ratio_is_not_known() -> None:
    """Two blocks and many comparisons: Student's interval reaches past what a float can hold."""
    sample = sample_of([np.array([0.0]), np.array([1.5])])
    found = classify([lambda confidence: interval(sample, confidence)] * 80)
    assert {(outcome.word, outcome.mde) for outcome in found} == {("inconclusive", None)}
