"""What to do next links to the form of the benchmark that measures what it brings."""

from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse

from pgperf.analysis.verdict import Verdict, VerdictNumbers
from pgperf.models import Benchmark, Run
from tests import factories
from tests.admin.users import staff_client


@pytest.fixture
def run(db: None) -> Run:
    """Without a faster layer of its own that would be the advice."""
    run = factories.make_results(factories.make_run(), routes=("socket",), layers=("libpq", "django_orm"))
    numbers = VerdictNumbers(response_us=211.0, parts_us={"client": 165.0}, queue_us={"client": 0.0})
    verdict = Verdict("client_cpu", "likely", numbers=numbers, intervention="lower_layer")
    run.variants.filter(layer="django_orm").update(verdict=verdict.to_json())
    return run


def page(client: Client, run: Run) -> str:
    return client.get(reverse("admin:pgperf_run_change", args=[run.pk])).content.decode()


def link(benchmark: Benchmark, run: Run) -> str:
    form = reverse("admin:pgperf_benchmark_run", args=[benchmark.pk])
    return f'href="{form}?database={run.database_id}&amp;length=quick"'


def test_the_link_is_shown_to_those_who_may_start_the_benchmark(
    run: Run, client_of: Callable[[str], Client]
) -> None:
    runner, viewer = client_of("runner"), client_of("viewer")
    starter = staff_client("starter", "view_run", "start_run")
    Benchmark.objects.filter(name="layers-and-modes").delete()
    assert "Measure it here" not in page(runner, run), "the site has deleted that benchmark"
    found = factories.make_benchmark("layers-and-modes")
    assert link(found, run) in page(runner, run)
    assert "Measure it here" not in page(viewer, run)
    assert "Measure it here" not in page(starter, run), "that form is closed to a user who sees no benchmark"
    Benchmark.objects.filter(pk=found.pk).update(restricted=True)
    assert "Measure it here" not in page(runner, run)


def test_each_benchmark_that_the_site_has_gets_a_link(run: Run, client_of: Callable[[str], Client]) -> None:
    """Fewer round trips are measured by the example site, and a nearer server by the catalog."""
    verdict = Verdict("latency", "likely", numbers=VerdictNumbers(response_us=211.0))
    run.variants.filter(layer="django_orm").update(verdict=verdict.to_json())
    distance, trips = Benchmark.objects.get(name="published-a"), factories.make_benchmark("n-plus-one")
    runner = client_of("runner")
    shown = page(runner, run)
    assert shown.count("Measure it here") == 2
    assert link(distance, run) in shown
    assert link(trips, run) in shown
    trips.delete()
    assert page(runner, run).count("Measure it here") == 1
