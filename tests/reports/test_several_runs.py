"""Several runs beside each other."""

from typing import Any

import pytest

from pgperf.models import Run
from pgperf.reports import step_changes
from pgperf.reports.comparison_files import markdown
from pgperf.reports.several_runs import compare_several
from tests import factories
from tests.reports.reading import texts

pytestmark = pytest.mark.django_db


def ended(asyncpg: str, settings: dict[str, str]) -> Run:
    """A run whose layer asyncpg has this version of its driver, "" for a run without that layer."""
    layers: dict[str, Any] = dict(factories.ENVIRONMENT["layers"])
    if asyncpg:
        layers["asyncpg"] = {"driver": "asyncpg", "driver_version": asyncpg}
    environment = {**factories.ENVIRONMENT, "layers": layers, "server": settings}
    run = factories.make_results(factories.make_run())
    run.environment = environment
    return run


def test_each_run_has_its_own_value_of_what_differs() -> None:
    """Also a run that has none: it does not differ from the baseline in that."""
    every = {"max_wal_size": "1GB", "work_mem": "4MB"}
    runs = [ended("0.30", every), ended("0.31", {**every, "work_mem": "16MB", "geqo": "off"}), ended("", {})]
    table = compare_several(runs).differences
    assert table
    assert {row[0]: row[1:] for row in texts(table)} == {
        "layers · asyncpg · driver version": ["0.30", "0.31", "–"],
        "layers · asyncpg": [
            "driver asyncpg, driver_version 0.30", "driver asyncpg, driver_version 0.31", "–"
        ],
        "server · work_mem": ["4MB", "16MB", "unknown"],
        "server · geqo": ["default", "off", "unknown"],
    }  # fmt: skip


def test_a_partial_run_is_named_once() -> None:
    runs = [factories.make_results(factories.make_run()) for _ in range(3)]
    runs[0].summary |= {"partial": True}
    found = compare_several(runs)
    assert len(found.cautions) == 1
    assert f"- {runs[0]} has partial results" in markdown(found)


def slower(**factors: float) -> Run:
    return factories.make_results(factories.make_run(), slower=factors)


def test_a_bar_for_each_run_is_split_by_what_each_layer_adds() -> None:
    runs = [slower(), slower(django_orm=1.2), slower()]
    found = compare_several(runs)
    assert [title for title, _chart in found.stacks] == ["socket", "tcp", "pgbouncer"]
    _title, chart = found.stacks[0]
    first, second, third = runs
    assert chart["rows"] == [[f"#{first.pk} (baseline)"], [f"#{second.pk}"], [f"#{third.pk}"]]
    by_layer = {series["name"]: series["values"] for series in chart["series"]}
    assert by_layer["Django ORM"] == pytest.approx([125.3, 168.24, 125.3])
    assert sum(values[0] for values in by_layer.values()) == pytest.approx(214.7)


def test_each_run_has_the_change_of_each_step() -> None:
    runs = [slower(), slower(django_orm=1.2), slower()]
    table = compare_several(runs).step_effects
    assert table
    head, *cells = next(row for row in texts(table) if row[0] == "Django ORM · socket")
    assert (head, cells[0], cells[1]) == ("Django ORM · socket", "Django cursor", "125")
    assert cells[2].startswith("+42.9 (")
    assert cells[3].startswith("0.00 (")
    assert cells[3].endswith(", equivalent")
    assert table.caption.endswith(f"how many µs more than #{runs[0].pk} (baseline)")


def test_the_scatter_of_steps_is_shown_beside_that_of_times() -> None:
    runs = [slower(), slower(django_orm=1.2), slower()]
    _times, steps = compare_several(runs).scatter
    row = next(row for row in texts(steps) if row[0] == "Django ORM · socket")
    assert row == ["Django ORM · socket", "Django cursor", "125", "168", "24.8"]
    assert compare_several(runs[:2]).scatter == []


def test_the_steps_are_in_markdown_but_not_where_only_ratios_are_asked_for() -> None:
    found = compare_several([slower(), slower(django_orm=1.2)])
    assert "| +42.9 (" in markdown(found)
    assert "adds" not in markdown(found.relative())
    assert found.relative().stacks == []


def test_two_runs_of_one_workload_each_share_bars_whatever_its_name() -> None:
    runs = [slower(), slower()]
    for ladder in runs[1].summary["ladders"]:
        ladder["workload"] = "another-name"
    assert [len(chart["rows"]) for _title, chart in compare_several(runs).stacks] == [2, 2, 2]


def test_a_variant_has_one_row_where_only_some_runs_name_workloads() -> None:
    """Those with several workloads do."""
    runs = [slower(), slower(), slower(django_orm=1.2)]
    for level in runs[2].summary["levels"]:
        level["variant"]["named"] = True
    for table in compare_several(runs).effects:
        assert [row for row in texts(table) if "–" in row] == []


def test_a_table_has_the_numbers_of_the_ladders() -> None:
    found = compare_several([slower(), slower(django_orm=1.2), slower()])
    assert [column.title for column in found.times.columns] == [
        "Variant", *(f"#{run.pk}{' (baseline)' * (at == 0)}" for at, run in enumerate(found.runs))
    ]  # fmt: skip
    drawn = [
        series["values"][row] * {"µs": 1.0, "ms": 1000.0}[chart["unit"]]
        for _title, chart in found.ladders
        for row in range(len(chart["rows"]))
        for series in chart["series"]
    ]
    assert drawn == pytest.approx([cell.values[0] for row in found.times.rows for cell in row[1:]])


def of_workloads(*workloads: str) -> Run:
    """A run of these workloads, whose variants name them where they are several."""
    run = slower()
    levels: list[dict[str, Any]] = []
    for name in workloads:
        more = {"workload": name, "named": len(workloads) > 1}
        levels += [
            {**level, "variant": {**level["variant"], **more}}
            for level in run.summary["levels"]
            if level["variant"]["route"] == "tcp"
        ]
    ladder = next(each for each in run.summary["ladders"] if each["route"] == "tcp")
    run.summary |= {"levels": levels, "ladders": [{**ladder, "workload": name} for name in workloads]}
    return run


def test_the_workloads_of_one_run_are_told_in_titles_beside_runs_of_single_ones() -> None:
    """Of runs whose variants name no workload, too: that is what tells their rows apart."""
    found = compare_several([of_workloads("one"), of_workloads("one", "two"), of_workloads("one")])
    assert [title for title, _chart in found.ladders] == ["tcp · one", "tcp · two"]
    for table in (*found.effects, found.scatter[0]):
        titles = [row[0] for row in texts(table)]
        assert all(title.endswith(" · tcp · one") for title in titles)
        assert len(set(titles)) == len(titles)


def test_the_steps_of_a_single_workload_are_titled_as_those_of_several() -> None:
    runs = [of_workloads("one"), of_workloads("one")]
    steps = [side.steps for side in compare_several(runs).sides]
    table = step_changes.scatter(steps, named=True)
    assert {row[0].rpartition(" · ")[2] for row in texts(table)} == {"one"}
    assert {row[0].rpartition(" · ")[2] for row in texts(step_changes.scatter(steps, named=False))} == {"tcp"}


def test_a_layer_on_another_ground_is_not_compared() -> None:
    whole = slower()
    without = factories.make_results(factories.make_run(), layers=("libpq", "psycopg", "django_orm"))
    told = compare_several([whole, without]).one_sided
    assert (
        f"What Django ORM · tcp adds is not compared: it stands on Django cursor in #{whole.pk} (baseline) and"
        f" on psycopg 3 in #{without.pk}."
    ) in told
