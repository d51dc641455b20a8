"""The section "Connecting": phases as bars and distributions, and throughput without connecting."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from pgperf.models import Run
from pgperf.reports import connections, run_page
from pgperf.reports.run_rows import read
from tests import factories
from tests.phases import SHARES, add_phases
from tests.reports.reading import texts

pytestmark = pytest.mark.django_db
LAYERS = ("libpq", "pgbench", "psycopg", "django_orm")


@pytest.fixture
def run() -> Run:
    return add_phases(factories.make_results(factories.make_run(), routes=("tcp",), layers=LAYERS))


def test_each_variant_that_connects_has_a_bar_of_its_phases(run: Run) -> None:
    shown = connections.reconnecting(read(run).variants)
    chart = connections.phases(shown)
    labels = [" ".join(lines) for lines in chart["rows"]]
    assert len(labels) == len(
        {row.label for row in run.variants.all() if row.layer in SHARES and not row.control}
    )
    assert not any("psycopg" in label for label in labels)
    for row, *parts in zip(
        connections.measured(shown), *(line["values"] for line in chart["series"]), strict=True
    ):
        assert sum(part or 0 for part in parts) == pytest.approx(row.latency_us["mean"])
    assert [line["name"] for line in chart["series"]] == ["connect", "operate", "close"]


def test_a_phase_that_is_not_known_apart_is_no_zero(run: Run) -> None:
    shown = connections.reconnecting(read(run).variants)
    rows = {(first, phase): rest for first, phase, *rest in texts(connections.phase_table(shown))}
    (closing,) = [
        rest for (first, phase), rest in rows.items() if first.startswith("pgbench") and phase == "close"
    ]
    assert set(closing) == {"unknown"}
    closes = connections.phases(shown)["series"][2]["values"]
    assert None in closes
    assert 0 not in closes


def test_each_phase_has_its_own_percentiles_where_it_is_known(run: Run) -> None:
    shown = connections.reconnecting(read(run).variants)
    charts = connections.percentiles(shown)
    assert [chart["axis"].split(",")[0] for chart in charts] == ["connect", "operate", "close"]
    known = connections.measured(shown)
    for chart, phase in zip(charts, ("connect", "operate", "close"), strict=True):
        own = [row for row in known if row.phases_us[phase]["p50"] is not None]
        assert len(chart["rows"]) == len(own)
        for line in chart["series"]:
            assert line["values"] == [row.phases_us[phase][line["name"]] for row in own]
    assert len(charts[2]["rows"]) < len(charts[0]["rows"])  # pgbench knows no closing


def test_old_pgbenchs_throughput_never_exceeds_the_one_without_closing(run: Run) -> None:
    shown = connections.reconnecting(read(run).variants)
    found = {first: rest for first, *rest in texts(connections.throughput_table(shown, {}))}
    by_layer = {
        layer: next(v for k, v in found.items() if k.startswith(layer)) for layer in ("libpq", "pgbench")
    }
    including, excluding, old = (float(each.replace(",", "")) for each in by_layer["libpq"])
    assert including < old < excluding
    assert by_layer["pgbench"][2] == "unknown"
    orm = next(rest for first, rest in found.items() if first.startswith("Django ORM"))
    assert orm[2] == "unknown"  # connecting leaves 4 % of its time
    assert orm[1] != "unknown"


def test_a_run_that_keeps_its_connections_has_no_such_section(run: Run) -> None:
    kept = factories.make_results(factories.make_run())
    assert run_page.result(run).part("connections")
    assert run_page.result(kept).part("connections") is None


def test_at_a_rate_there_is_no_throughput_without_connecting(run: Run, admin_client: Client) -> None:
    run.variants.filter(layer="libpq").update(rate=10.0, schedule="constant")
    part: Any = run_page.result(run).part("connections")
    titles = [row[0] for row in texts(part["throughput_table"])]
    assert {title.partition(" · ")[0] for title in titles} == {"pgbench", "Django ORM"}
    assert {layer for layer, _rest in part["throughput"]["rows"]} == {"pgbench", "Django ORM"}
    run.variants.update(rate=10.0, schedule="constant")
    text = admin_client.get(reverse("admin:pgperf_run_change", args=[run.pk])).content.decode()
    assert "Connect, operate and close" in text
    assert "Throughput with and without connecting" not in text
    assert "Throughput excluding connection time is" not in text
