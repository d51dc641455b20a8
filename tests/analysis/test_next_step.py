"""What to try next: the faster variant of the run, else what the verdict advises."""

from typing import Any

import pytest

from pgperf.analysis import verdict_kinds
from pgperf.analysis.next_step import _BY_WORD, Advice, NextStep, next_step
from pgperf.analysis.variant_summary import VariantSummary
from pgperf.analysis.verdict import Basis, Finding, Verdict

from .rows import row, summary


def variant(us: float = 211.0, **changes: Any) -> VariantSummary:
    """A variant whose interval is 2 % wide, with its verdict."""
    fields: dict[str, Any] = {"mode": "simple", "connect": "persistent", "workload": "books", **changes}
    record = summary(row(us, us_per_op_low=us * 0.99, us_per_op_high=us * 1.01, **fields))
    return VariantSummary.from_json({**record.to_json(), "verdict": verdict_kinds.judge(record).to_json()})


def advice(own: VariantSummary, *others: VariantSummary) -> NextStep:
    found = next_step(own, [own, *others])
    assert found
    return found


def test_a_faster_variant_of_the_run_is_advised_with_what_it_saved() -> None:
    found = advice(variant(), variant(150.0, mode="prepared"), variant(180.0, layer="django_cursor"))
    assert found == NextStep(
        Advice.ALTERNATIVE, 211.0, pytest.approx(61.0), True, (("mode", "prepared"),), found.least_us
    )
    assert found.least_us is not None
    assert 0 < found.least_us < 61


@pytest.mark.parametrize(
    "changes",
    [
        {"layer": "libpq"},  # a measure, no choice
        {"layer": "pgbench"},
        {"layer": "fake"},
        {"layer": "django_orm_async", "mode": "prepared"},  # differs in two
        {"clients": 2},
        {"workload": "other"},
        {"environment": "other", "mode": "prepared"},
        {"control": 1},
        {"route": "socket+1ms"},
        {"route": "tcp+1ms"},
    ],
)
def test_what_a_program_would_not_use_instead_is_no_alternative(changes: dict[str, Any]) -> None:
    assert advice(variant(), variant(50.0, **changes)).advice == Advice.CLIENT_CODE


@pytest.mark.parametrize("us", [209.5, 208.0, 230.0])
def test_a_variant_that_is_not_certainly_faster_is_no_alternative(us: float) -> None:
    assert advice(variant(), variant(us, mode="prepared")).advice == Advice.CLIENT_CODE


@pytest.mark.parametrize(("high", "told"), [(150.0, Advice.ALTERNATIVE), (208.0, Advice.QUIET)])
def test_a_quieter_machine_comes_before_a_vague_saving(high: float, told: Advice) -> None:
    """After a disturbed measurement a change of code is advised only for a saving that is sure."""
    assert advice(disturbed(0.0), faster(high)).advice == told


@pytest.mark.parametrize(("added_us", "told"), [(54.0, Advice.ALTERNATIVE), (57.0, Advice.QUIET)])
def test_a_saving_may_not_be_the_time_that_others_took(added_us: float, told: Advice) -> None:
    """Of 111 µs, more than half is left or not."""
    found = advice(disturbed(added_us), faster(101.0))
    assert found.advice == told
    if told == Advice.ALTERNATIVE:
        assert found.us == found.least_us == pytest.approx(111.0 - added_us)


def disturbed(added_us: float) -> VariantSummary:
    """A variant of 211 µs to which the hypervisor may have added some."""
    own = variant()
    assert own.verdict is not None
    steal = {"source": "steal", "where": "host", "us": added_us, "share": 0.1, "cpus": None, "programs": []}
    verdict = {**own.verdict.to_json(), "word": "disturbed"}
    verdict["grade"] = {"word": "poor", "share": 0.1, "disturbances": [steal]}
    return VariantSummary.from_json({**own.to_json(), "verdict": verdict})


def faster(high: float) -> VariantSummary:
    """One of 100 µs."""
    return summary(row(100.0, us_per_op_low=90.0, us_per_op_high=high, mode="prepared", connect="persistent",
                       workload="books"))  # fmt: skip


def test_without_an_alternative_the_part_that_bounds_is_the_most_that_can_be_saved() -> None:
    assert advice(variant()) == NextStep(Advice.CLIENT_CODE, 211.0, pytest.approx(165.0))
    served = advice(variant(client=20.0, server=150.0))
    assert served == NextStep(Advice.STATEMENT, 211.0, pytest.approx(150.0))
    assert advice(variant(client=30.0, server=30.0)).advice == Advice.ROUND_TRIPS


def test_cpus_that_are_used_up_need_more_of_them() -> None:
    full = variant(1320.0, client=165.0, server=21.0, clients=8, queue={"client": 1100.0})
    assert advice(full).advice == Advice.CLIENT_CPUS


def test_an_operation_that_mostly_connects_should_keep_its_connection() -> None:
    phases = {"connect": {"mean": 150.0}, "operate": {"mean": 40.0}, "close": {"mean": 10.0}}
    found = advice(variant(connect="per_operation", phases_us=phases))
    assert found == NextStep(Advice.KEEP_CONNECTIONS, 211.0, pytest.approx(160.0))
    phases["connect"]["mean"] = 500.0  # a mean of few, beside the operations' own
    assert advice(variant(connect="per_operation", phases_us=phases)).us == 211.0
    phases["connect"]["mean"] = 50.0
    assert advice(variant(connect="per_operation", phases_us=phases)).advice == Advice.CLIENT_CODE


def test_what_is_unknown_needs_a_grant_or_its_figures() -> None:
    assert advice(variant(client=60.0, server=None)).advice == Advice.FIGURES
    unseen = Verdict(
        "unknown", finding=Finding(Basis.UNEXPLAINED, missing=("server CPU",), grant="GRANT a TO b")
    )
    record = variant().to_json() | {"verdict": unseen.to_json()}
    assert advice(VariantSummary.from_json(record)).advice == Advice.GRANT


def test_every_word_has_an_advice() -> None:
    assert {*_BY_WORD, "unknown"} == set(verdict_kinds.words())
    assert next_step(summary(row()), []) is None, "a variant without a verdict"
