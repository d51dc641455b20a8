"""The parts of an operation's time, from a row without its large columns."""

import pytest

from pgperf.analysis.time_breakdown import PART_TITLES, PARTS, TimeBreakdown
from pgperf.models import VariantResult
from pgperf.reports.labels import role_names
from pgperf.reports.time_parts import time_parts
from tests import factories
from tests.cpu_accounts import add_cpu_accounts

pytestmark = pytest.mark.django_db


@pytest.fixture
def orm() -> VariantResult:
    run = add_cpu_accounts(factories.make_results(factories.make_run()))
    return run.variants.get(layer="django_orm", route="socket", control=0)


def test_they_are_those_of_the_breakdown_without_the_diagnostics(orm: VariantResult) -> None:
    lean = VariantResult.objects.defer("diagnostics", "top", "latency_us").get(pk=orm.pk)
    found = time_parts(lean)
    assert found == pytest.approx(TimeBreakdown.of(orm.record).parts())
    assert (found["server_lock"], found["waiting"]) == (pytest.approx(0.07 * orm.us_per_op), None)
    assert tuple(found) == PARTS
    assert "diagnostics" in lean.get_deferred_fields()


def test_without_a_verdict_the_waiting_is_whole(orm: VariantResult) -> None:
    orm.verdict = {}
    found = time_parts(orm)
    assert found["server_lock"] is None
    assert sum(us for us in found.values() if us) == pytest.approx(orm.us_per_op)
    assert found["waiting"] > 0


def test_without_a_cpu_account_nothing_is_known(orm: VariantResult) -> None:
    orm.cpu_account = {}
    assert time_parts(orm) == dict.fromkeys(PARTS)


def test_every_part_has_a_name_of_its_own() -> None:
    assert tuple(PART_TITLES) == PARTS
    names = [role_names()[part] for part in PARTS]
    assert names == list(PART_TITLES.values())
    assert len(set(names)) == len(PARTS)
