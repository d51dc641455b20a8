"""One side of a comparison: which of its variants were much disturbed."""

import json
from dataclasses import asdict

import pytest

from pgperf.analysis.grade import Disturbance, Grade
from pgperf.models import Run
from pgperf.reports.compared_run import exported, stored
from pgperf.reports.run_json import run_json
from tests import factories

pytestmark = pytest.mark.django_db

#: Each took a fifth of 200 µs.
QUOTA = Disturbance("throttling", "client", 40.0, 0.2)
CLOCK = Disturbance("clock", "host", 40.0, 0.2)
STEAL = Disturbance("steal", "host", 40.0, 0.1)


def graded(*found: Disturbance) -> Run:
    """A run of which one variant was much disturbed by these."""
    run = factories.make_results(factories.make_run())
    row = run.variants.get(layer="django_orm", route="tcp", control=0)
    grade = asdict(Grade("poor", 0.2 * len(found), found))
    row.verdict = {**factories.stored_verdict(), "grade": grade}
    row.save()
    return run


@pytest.mark.parametrize(
    ("found", "share"),
    [((QUOTA,), None), ((CLOCK,), None), ((QUOTA, CLOCK), None), ((STEAL,), 0.2), ((QUOTA, STEAL), 0.2)],
)
def test_a_quota_and_a_slow_clock_are_no_disturbance_by_others(
    found: tuple[Disturbance, ...], share: float | None
) -> None:
    run = graded(*found)
    data = json.loads(json.dumps(run_json(run)))
    for most in (stored(run).most_disturbed, exported(data).most_disturbed):
        assert (most.disturbed if most else None) == (share and pytest.approx(share))


def test_a_little_steal_beside_a_large_quota_is_not_much() -> None:
    little = Disturbance("steal", "host", 10.0, 0.05)
    assert stored(graded(QUOTA, little)).most_disturbed is None
