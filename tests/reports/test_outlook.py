"""What to expect of a run, in words."""

from dataclasses import replace

import pytest

from pgperf.analysis.machine_look import Program
from pgperf.core.records import Prediction
from pgperf.reports.outlook import advice, expectations, sentence, situation
from tests.machine_looks import QUIET, look
from tests.runner.test_prediction import plan

SHORT = Prediction(precision=0.031, seconds=60.2, blocks=7, rounds=5, target=0.02, target_s=140.0)


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, "about ±3.1 % in 1 min; ±2 % would take about 2 min 20 s"),
        ({"precision": 0.018, "seconds": 44.6}, "about ±1.8 % in 45 s"),
        ({"target": None, "target_s": None}, "about ±3.1 % in 1 min"),
        ({"target_s": None}, "about ±3.1 % in 1 min; ±2 % is out of reach here now"),
    ],
)
def test_the_sentence_has_the_precision_its_time_and_that_of_the_target(
    changed: dict[str, object], expected: str
) -> None:
    assert sentence(replace(SHORT, **changed)) == expected  # type: ignore[arg-type]


def test_a_quiet_machine_has_its_figures() -> None:
    assert situation(QUIET) == (
        "The machine is quiet: other programs use at most 3 % of a CPU (CPU 0); the hypervisor takes 0.4 %; "
        "a process that wakes up waits 0.09 ms for a CPU; the time for equal work varies by 2.5 %."
    )
    assert advice(QUIET) == ""


def test_what_is_not_known_is_not_said() -> None:
    unknown = replace(QUIET, steal=None, others={0: None}, slices_us=(100.0,))
    assert situation(unknown) == "The machine is quiet: a process that wakes up waits 0.09 ms for a CPU."


def test_a_bad_moment_has_its_reasons_and_the_programs() -> None:
    programs = (Program("stress", 0.4), Program("stress", 0.2), Program("sshd", 0.01))
    busy = replace(QUIET, others={0: 0.0, 1: 0.4}, steal=0.09, programs=programs, wake_up_us=(80.0, 4100.0))
    assert advice(busy) == "Wait until this has passed: a run now has wider intervals or takes longer."
    assert situation(busy) == (
        "Now is a bad moment: other programs (stress) use 40 % of CPU 1; the hypervisor takes 9 % of the CPU "
        "time; a process that wakes up waits 4.10 ms for a CPU."
    )


def test_a_machine_that_is_not_steady_is_a_bad_moment_by_itself() -> None:
    assert advice(look(0.08)).endswith(
        "With one client, the placement together may have narrower intervals. Its ratios cannot be compared"
        " with those of other placements."
    )
    assert situation(look(0.08)) == (
        "Now is a bad moment: CPU speed varies, so the time for equal work varies by 20 %."
    )


def test_each_plan_has_its_own_sentence_and_one_without_intervals_has_none() -> None:
    plans = {"Quick": plan(precision=5.0), "Full": plan(precision=2.0), "One block": plan(blocks=1)}
    found = expectations(plans, look(0.1))
    assert [title for title, _sentence in found] == ["Quick", "Full"]
    assert all(text.startswith("about ±") for _title, text in found)
