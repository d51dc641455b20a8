"""Data migrations: what an earlier version stored reads as if this one had."""

import base64
from dataclasses import asdict
from typing import Any

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from hdrh.histogram import HdrHistogram

from pgperf import packing, store
from pgperf.analysis import latency
from pgperf.models import BlockResult
from tests.factories import make_run
from tests.test_packing import measured

pytestmark = pytest.mark.django_db

BEFORE = ("pgperf", "0003_permissions_and_pins")


def migrate(names: list[tuple[str, str]]) -> Any:
    """The models as of that migration. Constraints are checked now, for PostgreSQL alters no table they wait on."""
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
    executor = MigrationExecutor(connection)
    executor.migrate(names)
    return MigrationExecutor(connection).loader.project_state(names).apps


def latest() -> list[tuple[str, str]]:
    return MigrationExecutor(connection).loader.graph.leaf_nodes("pgperf")


def test_blocks_of_before_are_packed_and_back() -> None:
    run = make_run()
    histogram = HdrHistogram(latency.LOWEST_NS, latency.HIGHEST_NS, latency.DIGITS)
    histogram.record_value(65_000, 7)
    as_text = bytes(histogram.encode())
    block = measured()
    data = {name: value for name, value in asdict(block).items() if name != "histogram"}

    old = migrate([BEFORE]).get_model("pgperf", "BlockResult")
    row = old.objects.create(
        run_id=run.pk, attempt=1, variant=block.variant.label, cohort=0, block=3, data=data, histogram=as_text
    )
    migrate(latest())
    (found,) = store.load_blocks(run)
    assert found.slices == block.slices
    assert latency.merge([found.histogram]).get_total_count() == 7
    assert bytes(BlockResult.objects.get().histogram) == base64.b64decode(as_text)[8:]

    again = migrate([BEFORE]).get_model("pgperf", "BlockResult").objects.get(pk=row.pk)
    assert packing.unpack(packing.pack(again.data)) == packing.unpack(packing.pack(data))
    assert bytes(again.histogram) == as_text
    migrate(latest())
