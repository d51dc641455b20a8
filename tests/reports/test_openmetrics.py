"""OpenMetrics text, read back by Prometheus's own parser."""

import re
from datetime import UTC, datetime
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser, Group, User
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.openmetrics import parser
from prometheus_client.parser import text_string_to_metric_families as prometheus_families

from pgperf.models import Benchmark, Database, Run
from pgperf.reports import openmetrics
from tests import factories

Found = dict[tuple[str, frozenset[tuple[str, str]]], float]


def samples(text: str) -> Found:
    """The samples by name and labels; the parser refuses a set of labels that comes twice."""
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in parser.text_string_to_metric_families(text)
        for sample in family.samples
    }


def values(found: Found, family: str, **labels: str) -> list[float]:
    """Of one family, those with these labels and any others."""
    wanted = set(labels.items())
    return [value for (name, has), value in found.items() if name == family and wanted <= has]


@pytest.fixture
def run(db: None) -> Run:
    return factories.make_results(factories.make_run())


def test_the_figures_are_those_of_the_run(run: Run) -> None:
    found = samples(openmetrics.text([run]))
    for row in run.variants.all():
        labels = {"layer": row.layer, "route": row.route, "control": str(row.control)}
        of_run = {"benchmark": "orm-overhead", "database": "demo", **labels}
        assert values(found, "pgperf_operation_seconds", **of_run) == [pytest.approx(row.us_per_op / 1e6)]
        assert values(found, "pgperf_operation_low_seconds", **of_run) == [
            pytest.approx(row.us_per_op_low / 1e6)
        ]
        assert values(found, "pgperf_operation_high_seconds", **of_run) == [
            pytest.approx(row.us_per_op_high / 1e6)
        ]
        assert values(found, "pgperf_operations_per_second", **of_run) == [row.ops_per_s]
        server = values(found, "pgperf_operation_cpu_seconds", role="server", **of_run)
        assert server == [pytest.approx(row.cpu_us_per_op["server"] / 1e6)]
    for each in run.comparisons.filter(aa=False):
        labels = {"layer": each.variant.layer, "route": each.variant.route, "baseline": each.baseline.label}
        assert each.ratio in values(found, "pgperf_comparison_ratio", control="0", **labels)


def test_the_age_of_the_figures_is_one_of_them(run: Run) -> None:
    Run.objects.update(finished_at=datetime(2026, 3, 1, tzinfo=UTC))
    run.refresh_from_db()
    found = values(
        samples(openmetrics.text([run])),
        "pgperf_run_finished_timestamp_seconds",
        run=str(run.pk),
        quick="false",
    )
    assert found == [1772323200.0]


def test_it_ends_with_its_mark_and_each_family_has_its_unit(run: Run) -> None:
    text = openmetrics.text([run])
    assert text.endswith("# EOF\n")
    for family in parser.text_string_to_metric_families(text):
        assert family.type == "gauge"
        assert family.documentation.endswith(".")
        assert family.unit == "" or family.name.endswith(f"_{family.unit}")


def test_without_runs_it_is_the_end_mark(db: None) -> None:
    assert openmetrics.text([]) == "# EOF\n"


def test_the_textfile_collector_reads_the_same_samples(run: Run) -> None:
    """node_exporter reads Prometheus's older format, in which UNIT and EOF are comments."""
    text = openmetrics.text([run])
    older = {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in prometheus_families(text)
        for sample in family.samples
    }
    assert older == samples(text)
    assert set(re.findall("^# TYPE .* (.*)$", text, re.MULTILINE)) == {"gauge"}


@pytest.mark.parametrize("unknown", [None, float("nan"), float("inf")])
def test_an_unknown_figure_has_no_sample(run: Run, unknown: float | None) -> None:
    row = run.variants.filter(layer="libpq", route="tcp", control=0)[0]
    row.us_per_op_low = unknown
    lines = openmetrics._lines(
        openmetrics.OPERATION_LOW, [({"layer": "libpq"}, unknown), ({"layer": "b"}, 1.0)]
    )
    assert values(samples("".join([*lines, "# EOF\n"])), "pgperf_operation_low_seconds") == [1.0]
    run.variants.update(us_per_op_low=None, cpu_us_per_op={})
    text = openmetrics.text([run])
    assert "pgperf_operation_low_seconds" not in text
    assert "pgperf_operation_cpu_seconds" not in text


odd = st.text(st.characters(exclude_categories=("Cs",)), max_size=30) | st.sampled_from(
    ['"', "\\", "\n", '\\"', "\\n", 'a",b="c', "} 1\n# EOF\n", "\r\n", "\u2028", "\x00", "é", " ", "# EOF"]
)


@given(
    st.lists(st.tuples(odd, odd), unique=True, max_size=5), st.floats(allow_nan=False, allow_infinity=False)
)
def test_any_name_reads_back(names: list[tuple[str, str]], value: float) -> None:
    lines = openmetrics._lines(
        openmetrics.OPERATION, [({"benchmark": one, "workload": other}, value) for one, other in names]
    )
    text = "".join([*lines, "# EOF\n"])
    wanted = {
        ("pgperf_operation_seconds", frozenset({"benchmark": one, "workload": other}.items())): value
        for one, other in names
    }
    assert samples(text) == wanted


class TestNewest:
    def test_of_each_benchmark_on_each_database(self, run: Run) -> None:
        older, newest = run, factories.make_run()
        elsewhere = factories.make_run(database=factories.make_database("other"))
        factories.make_run(benchmark=factories.make_benchmark("light"))
        for status in ("failed", "queued", "running"):
            factories.make_run(status, busy_key=None)
        factories.make_run(confirms=older, intervention="lower_layer")
        found = list(openmetrics.newest_done(Run.objects.all()))
        assert older not in found
        assert {newest, elsewhere} <= set(found)
        assert len(found) == 3

    def test_what_groups_hide_is_only_for_their_members(self, run: Run) -> None:
        group = Group.objects.create(name="insiders")
        member = User.objects.create_user("ada")
        member.groups.add(group)
        assert run.database
        run.database.groups.add(group)
        for user, shown in ((AnonymousUser(), []), (User.objects.create_user("eve"), []), (member, [run])):
            assert list(openmetrics.newest_done(openmetrics.seen_by(user))) == shown

    @pytest.mark.parametrize("model", [Benchmark, Database])
    def test_a_run_without_its_benchmark_or_database_is_none(self, run: Run, model: type[Any]) -> None:
        model.objects.filter(pk__in=[run.benchmark_id, run.database_id]).delete()
        assert not openmetrics.newest_done(Run.objects.all())

    def test_two_benchmarks_that_had_the_same_name_are_two_series(self, run: Run) -> None:
        Benchmark.objects.filter(pk=run.benchmark_id).update(name="renamed")
        factories.make_results(factories.make_run(benchmark=factories.make_benchmark("orm-overhead")))
        found = samples(openmetrics.text(openmetrics.newest_done(Run.objects.all())))
        for name in ("renamed", "orm-overhead"):
            assert values(found, "pgperf_run_finished_timestamp_seconds", benchmark=name)

    def test_queries_grow_by_two_for_each_run(self, run: Run) -> None:
        factories.make_results(factories.make_run(database=factories.make_database("other")))
        with CaptureQueriesContext(
            connection,
        ) as asked:
            openmetrics.text(openmetrics.newest_done(Run.objects.all()))
        assert len(asked) == 1 + 2 * 2
