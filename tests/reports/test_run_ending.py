"""How a run ended, in a sentence."""

from dataclasses import replace

import pytest

from pgperf.core.records import ENDING, Ending
from pgperf.models import Run
from pgperf.reports.run_ending import fact, remedy, sentence

ENOUGH = Ending(reason="precision", blocks=8, seconds=58.2, budget_s=90.0, precision=0.0161, target=0.02)


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, "The ratios are known to ±1.6 % after 58 s."),
        ({"seconds": 121.0, "precision": 0.004}, "The ratios are known to ±0.4 % after 2 min 1 s."),
        (
            {"reason": "budget", "seconds": 88.0, "precision": 0.04},
            "90 s used up; the ratios are known to ±4 %, not to ±2 %: run longer or on a quieter machine.",
        ),
        (
            {"reason": "budget", "seconds": 88.0, "precision": 0.02012},
            "90 s used up; the ratios are known to ±2.01 %, not to ±2 %: run longer or on a quieter machine.",
        ),
        (
            {"reason": "budget", "seconds": 74.0, "precision": 0.04},
            "74 s of 90 s used, and another block would not have fit; the ratios are known to ±4 %, not to ±2 %:"
            " run longer or on a quieter machine.",
        ),
        (
            {"reason": "budget", "seconds": 88.0, "precision": 0.019},
            "90 s used up; the ratios are known to ±1.9 %.",
        ),
        (
            {"reason": "budget", "seconds": 90.0, "target": None},
            "90 s used up; the ratios are known to ±1.6 %.",
        ),
        (
            {"reason": "budget", "seconds": 90.0, "precision": 1.5},
            "90 s used up; the ratios are not even known to ±100 %: run longer or on a quieter machine.",
        ),
        (
            {"reason": "budget", "seconds": 112.0, "precision": None},
            "90 s used up; the precision is not known: run longer.",
        ),
        (
            {"reason": "blocks", "blocks": 1, "precision": None},
            "1 block measured in 58 s; the precision is not known: run longer.",
        ),
        (
            {"reason": "blocks", "blocks": 10, "precision": 0.123},
            "10 blocks measured in 58 s; the ratios are known to ±12 %, not to ±2 %: run longer or on a quieter"
            " machine.",
        ),
    ],
)
def test_the_sentence_has_the_precision_the_time_and_a_remedy(
    changed: dict[str, object], expected: str
) -> None:
    run = Run(environment={ENDING: replace(ENOUGH, **changed).to_json()})  # type: ignore[arg-type]
    assert sentence(run) == expected
    told, _colon, advice = expected.partition(": ")
    assert remedy(run) == advice
    assert fact(run) == (f"{told}." if advice else told)


@pytest.mark.parametrize(
    ("placed", "asked", "remedy"),
    [
        (
            "apart",
            {"clients": [1], "workers": 1},
            "run longer, on a quieter machine, or with the placement “together” (its ratios are not comparable"
            " with these).",
        ),
        ("together", {"clients": [1], "workers": 1}, "run longer or on a quieter machine."),
        ("scheduler", {"clients": [1], "workers": 1}, "run longer or on a quieter machine."),
        ("apart", {"clients": [1, 8], "workers": 1}, "run longer or on a quieter machine."),
        ("apart", {"clients": [1], "workers": 10}, "run longer or on a quieter machine."),
    ],
)
@pytest.mark.parametrize("precision", [0.04, 1.5])
def test_one_client_on_a_cpu_of_its_own_may_share_that_of_the_server(
    placed: str, asked: dict[str, object], remedy: str, precision: float
) -> None:
    ending = replace(ENOUGH, reason="budget", precision=precision)
    environment = {ENDING: ending.to_json(), "placement": {"placement": placed}}
    assert sentence(Run(environment=environment, definition=asked)).endswith(f": {remedy}")


def test_a_run_of_a_fixed_length_or_without_an_environment_has_no_sentence() -> None:
    assert sentence(Run()) == ""
    assert sentence(Run(environment={"python": "3.11"})) == ""


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"reason": "blocks", "blocks": 6, "precision": None}, "6 blocks measured in 58 s."),
        (
            {"reason": "budget", "blocks": 4},
            "58 s of 90 s used, and another block would not have fit; the test needs 6 blocks and is inconclusive:"
            " try again when the machine is quieter.",
        ),
    ],
)
def test_a_test_of_a_verdict_needs_all_its_blocks(changed: dict[str, object], expected: str) -> None:
    ending = replace(ENOUGH, target=None, **changed)  # type: ignore[arg-type]
    run = Run(definition={"ends_after_blocks": True, "blocks": 6}, environment={ENDING: ending.to_json()})
    assert sentence(run) == fact(run) == expected
    assert remedy(run) == ""
