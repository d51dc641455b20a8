"""Which changes a reader may know, some of whose runs are hidden."""

from typing import Any

import pytest

from pgperf.models import ChangePoint, Run
from pgperf.runs.seen_changes import changes_up_to, seen_changes
from tests.histories import BASE, LABEL, make_history

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(("hidden", "seen"), [(2, [20]), (12, []), (16, [10]), (21, [10]), (28, [20, 10])])
def test_a_change_is_known_to_those_who_see_all_runs_of_its_levels(hidden: int, seen: list[int]) -> None:
    """Two changes, at the runs 10 and 20, which the runs 14 and 24 showed."""
    runs = make_history(30)
    for at in (10, 20):
        ChangePoint.objects.create(
            run=runs[at], label=LABEL, below=BASE, found_by=runs[at + 4].pk, before_us=1.0, after_us=2.0,
            low_us=0.5, high_us=1.5,
        )  # fmt: skip
    every = Run.objects.all()
    known = seen_changes(every, every.exclude(pk=runs[hidden].pk))
    assert [each.run_id for each in known] == [runs[at].pk for at in seen]


@pytest.mark.parametrize("hidden", [1, 4])
def test_the_runs_up_to_one_are_counted_where_all_of_their_series_are_seen(hidden: int) -> None:
    """A hidden run may hide a change up to this one, which a later run may have shown."""
    runs = make_history(5)
    assert changes_up_to(runs[3], Run.objects.all()) == ([], 4)
    assert changes_up_to(runs[3], Run.objects.exclude(pk=runs[hidden].pk)) == ([], 0)


def test_a_hidden_run_of_another_series_hides_no_change() -> None:
    runs = make_history(4)
    [other] = make_history(1, definition_hash="ab" * 32)
    assert changes_up_to(runs[3], Run.objects.exclude(pk=other.pk)) == ([], 4)


def test_changes_are_read_where_their_runs_are(settings: Any) -> None:
    """A replica may lack those of a run that has just ended."""
    (run,) = make_history(1)
    ChangePoint.objects.create(
        run=run, label=LABEL, below=BASE, found_by=run.pk, before_us=1.0, after_us=2.0, low_us=0.5, high_us=1.5,
    )  # fmt: skip
    settings.DATABASE_ROUTERS = ["tests.lost_replica.Router"]
    every = Run.objects.using("default")
    assert [each.run for each in seen_changes(every, every)] == [run]
