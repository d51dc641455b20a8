"""A level outlives the run with which it began, and so does a change of the environment."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.db.models.signals import pre_delete

from pgperf import signals
from pgperf.models import ChangePoint, Run
from pgperf.runs import changes
from tests import factories
from tests.histories import make_history

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True, params=[False, True], ids=["no listener", "a listener"])
def listening(request: pytest.FixtureRequest) -> Iterator[None]:
    """With such a listener, Django reads the keys of what is deleted first."""

    def listen(**_given: Any) -> None:
        pass

    if request.param:
        pre_delete.connect(listen)
    yield
    pre_delete.disconnect(listen)


@pytest.fixture
def runs() -> list[Run]:
    """A history with a change at the run of place 20 or beside it; the last run has not ended yet."""
    made = make_history(30, lambda at: 10.0 if at < 20 else 22.0)
    for each in made[:-1]:
        changes.record(each)
    return made


def begun() -> set[int]:
    """The runs with which levels begin."""
    return set(ChangePoint.objects.values_list("run_id", flat=True))


def test_the_next_run_begins_the_level_and_nothing_is_announced_again(runs: list[Run]) -> None:
    (first,) = begun()
    numbers = [run.pk for run in runs]
    count = ChangePoint.objects.count()
    heard: list[Any] = []
    signals.change_found.connect(listener := lambda **given: heard.append(given))
    try:
        Run.objects.get(pk=first).delete()
        assert begun() == {numbers[numbers.index(first) + 1]}
        assert ChangePoint.objects.count() == count
        assert changes.record(runs[-1]) == heard == []
    finally:
        signals.change_found.disconnect(listener)


def test_several_runs_deleted_at_once(runs: list[Run]) -> None:
    (first,) = begun()
    place = [run.pk for run in runs].index(first)
    Run.objects.filter(pk__in=[run.pk for run in runs[place - 3 : place + 3]]).delete()
    assert begun() == {runs[place + 3].pk}


def test_all_runs_of_a_level_deleted_at_once_take_it_along(runs: list[Run]) -> None:
    (first,) = begun()
    Run.objects.filter(pk__gte=first).delete()
    assert begun() == set()


def test_a_run_that_began_the_same_level_keeps_its_own_row(runs: list[Run]) -> None:
    change = ChangePoint.objects.first()
    assert change
    later = min(run.pk for run in runs if run.pk > change.run_id)
    own = ChangePoint.objects.create(
        run_id=later, label=change.label, below=change.below, found_by=later, before_us=1, after_us=2, low_us=0.5,
        high_us=1.5,
    )  # fmt: skip
    others = ChangePoint.objects.count() - 2
    Run.objects.get(pk=change.run_id).delete()
    own.refresh_from_db()
    assert (own.before_us, own.found_by) == (1, later)
    assert ChangePoint.objects.exclude(pk=own.pk).filter(run=later).count() == others


def test_the_last_run_of_a_benchmark_takes_its_level_along(runs: list[Run]) -> None:
    (first,) = begun()
    Run.objects.filter(pk__gt=first).delete()
    Run.objects.get(pk=first).delete()
    assert begun() == set()


@pytest.mark.parametrize("places", [(2,), (1, 2)])
def test_the_next_run_s_environment_is_compared_again(places: tuple[int, ...]) -> None:
    """With that of the run before those that were deleted, when the next run ends."""
    other = {**factories.ENVIRONMENT, "python": "3.13.0"}
    made = make_history(5, environment=lambda at: other if at > 1 else factories.ENVIRONMENT)
    for each in made[:-1]:
        changes.record(each)
    Run.objects.filter(pk__in=[made[place].pk for place in places]).delete()
    changes.record(made[-1])
    differences = [["python", factories.ENVIRONMENT["python"], "3.13.0"]]
    found = Run.objects.get(pk=made[3].pk).environment_changes
    assert found == {"since": made[places[0] - 1].pk, "differences": differences}
    assert Run.objects.get(pk=made[4].pk).environment_changes == {"since": made[3].pk, "differences": []}
