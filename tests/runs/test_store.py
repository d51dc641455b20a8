"""Storing results as rows and loading them, for the current attempt only."""

import math
from dataclasses import replace
from typing import Any

import pytest

from pgperf.analysis.variant_comparisons import VariantComparison
from pgperf.core.exceptions import FenceLost
from pgperf.core.records import Timings, VariantBlock
from pgperf.models import BlockResult, Run
from pgperf.runs import state, store
from tests.core.builders import slice_record, variant
from tests.factories import make_run

pytestmark = pytest.mark.django_db

VARIANT = variant(workload="spin", layer="fake", route="here", placement="scheduler")
SLICE = slice_record(position=1, window_ns=200_000_000, us_per_op=20.0, ops_per_s=50_000.0, client_ns=7)
BLOCK = VariantBlock(
    variant=VARIANT,
    cohort=0,
    block=0,
    slices=(SLICE, replace(SLICE, round=1, disturbed="recording was full")),
    histogram=b"\x00\xffpacked",
    cold_us={"startup": 1000.5, "connect": None},
    versions={"driver": "none"},
    rows_per_op=1,
    latency_sum_ns=2**40,
    latency_sum_sq=1.5e21,
    latency_min_ns=10,
    latency_max_ns=9000,
)


@pytest.fixture
def run() -> Run:
    return state.claim(make_run(Run.Status.QUEUED, busy_key=None).pk, "w@h")


def test_blocks_survive_a_round_trip(run: Run) -> None:
    control, later = replace(BLOCK, variant=replace(VARIANT, control=1)), replace(BLOCK, block=1)
    store.save_blocks(run, [BLOCK, control])
    store.save_blocks(run, [later])
    assert store.load_blocks(run) == [BLOCK, control, later]
    assert set(BlockResult.objects.values_list("attempt", flat=True)) == {1}


def test_blocks_of_an_earlier_attempt_are_refused(run: Run) -> None:
    Run.objects.update(status=Run.Status.LOST)
    with pytest.raises(FenceLost):
        store.save_blocks(run, [BLOCK])
    assert not BlockResult.objects.exists()


def test_what_a_plan_leaves_out_is_stored_for_the_current_attempt_only(run: Run) -> None:
    store.save_skipped(run, [{"layer": "libpq", "reason": "not built"}])
    assert run.summary == Run.objects.get(pk=run.pk).summary
    assert run.summary == {"skipped": [{"layer": "libpq", "reason": "not built"}]}
    Run.objects.update(status=Run.Status.LOST)
    with pytest.raises(FenceLost):
        store.save_skipped(run, [])
    run.refresh_from_db()
    assert run.summary["skipped"]


def test_facts_are_stored_on_the_run(run: Run) -> None:
    store.save_facts(
        run,
        {"server": {"version": "18", "load": math.nan}},
        Timings(wall_s=5, startup_s=1, warm_up_s=1, pilot_s=0.5, slices_s=2),
    )
    run.refresh_from_db()
    assert run.environment == {"server": {"version": "18", "load": None}}
    assert run.timings == {
        "wall_s": 5, "startup_s": 1, "warm_up_s": 1, "pilot_s": 0.5, "slices_s": 2, "diagnostics_s": 0.0,
    }  # fmt: skip


def summary(**variant: Any) -> dict[str, Any]:
    """As analysis.summary makes it, small."""
    row = {"label": VARIANT.label, "workload": "spin", "layer": "fake", "mode": "simple", "route": "here", "clients": 1,
           "connect": "persistent", "placement": "scheduler", "ops": 10, "us_per_op": 20.0, **variant}  # fmt: skip
    comparison = VariantComparison(
        VARIANT,
        VARIANT,
        1.1,
        None,
        math.inf,
        2.0,
        None,
        None,
        "differs",
        aa=False,
        pairs=6,
        sample="blocks",
        mde=None,
    )
    return {
        "analysis_version": 3,
        "variants": [row],
        "comparisons": [comparison, comparison],
        "ladders": [{"a": 1}],
    }


def test_a_summary_becomes_rows(run: Run) -> None:
    store.save_summary(run, summary(us_per_op_low=math.inf), skipped={"libpq": "not built"}, partial=False)
    run.refresh_from_db()
    variant = run.variants.get()
    assert (variant.position, variant.ops, variant.us_per_op, variant.us_per_op_low) == (0, 10, 20.0, None)
    assert [row.position for row in run.comparisons.all()] == [0, 1]
    assert [(row.variant, row.baseline, row.high) for row in run.comparisons.all()] == [
        (variant, variant, None)
    ] * 2
    assert run.summary == {
        "analysis_version": 3,
        "ladders": [{"a": 1}],
        "skipped": {"libpq": "not built"},
        "partial": False,
    }
    assert run.analysis_version == 3


def test_a_second_summary_replaces_the_first(run: Run) -> None:
    store.save_summary(run, summary(ops=1))
    store.save_summary(run, summary(ops=2))
    assert run.variants.get().ops == 2
    assert run.comparisons.count() == 2


def test_a_summary_that_cannot_be_stored_changes_nothing(run: Run) -> None:
    store.save_summary(run, summary(ops=1))
    with pytest.raises(TypeError):
        store.save_summary(run, summary(unknown_field=1))
    assert run.variants.get().ops == 1


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        (1.5, 1.5),
        (math.inf, None),
        ((1, math.nan), [1, None]),
        ({"a": {"b": -math.inf}}, {"a": {"b": None}}),
        ("x", "x"),
        (True, True),
    ],
)
def test_non_finite_numbers_become_null(value: Any, kept: Any) -> None:
    assert store.finite(value) == kept
