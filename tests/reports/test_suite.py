"""The page of a suite: a heat map of ratios, its figures, and the geometric means."""

import json
import math
from dataclasses import replace
from typing import Any

import pytest

from pgperf.analysis.summary import summarise
from pgperf.analysis.verdict import Lead
from pgperf.catalog import BENCHMARKS
from pgperf.core.records import Definition, Variant, WorkloadDefinition
from pgperf.models import Run
from pgperf.reports import run_page, suite, verdicts
from pgperf.reports.answer.judged import judged, judged_column, suite_settings
from pgperf.reports.csv_results import means_csv
from pgperf.reports.run_json import run_json
from pgperf.reports.run_rows import read
from pgperf.runs import store
from tests import factories
from tests.analysis.synthetic import blocks, variant

pytestmark = pytest.mark.django_db

LAYERS = ("libpq", "psycopg", "asyncpg")
WORKS = ("one", "many", "wide")
RATIO = {"libpq": (1.0, 1.0, 1.0), "psycopg": (3.0, 1.2, 1.0), "asyncpg": (0.5, 0.8, 6.0)}


def us(of: Variant, block: int, round_: int) -> float:
    return 100.0 * RATIO[of.layer][WORKS.index(of.workload)] * (1 + block / 1000)


def measured(workloads: tuple[str, ...] = WORKS, lacking: str = "", layer: str = "asyncpg") -> Run:
    """A run of these workloads through three layers; one layer lacks those of `lacking`."""
    works = tuple(WorkloadDefinition(name, "SELECT 1") for name in workloads)
    base = BENCHMARKS["orm-overhead"]
    asked = Definition("suite", works, LAYERS, ("socket",), modes=base.modes, blocks=6, rounds=3)
    variants = [
        replace(variant(each), workload=name, named=True)
        for name in workloads
        for each in LAYERS
        if each != layer or name not in lacking.split()
    ]
    run = factories.make_run(definition=json.loads(json.dumps(asked.to_json())))
    summary = summarise(asked, variants, blocks(variants, 6, 3, us), "psycopg")
    store.save_summary(run, summary)
    return run


def cells(run: Run) -> dict[str, list[tuple[str, str]]]:
    rows = read(run)
    (setting,) = suite.settings(rows)
    table = suite.heat_map(setting, [setting])
    return {name.text: [(cell.text, cell.mark) for cell in rest] for name, *rest in table.rows}


def test_the_heat_map_has_a_row_for_each_workload_and_one_for_the_geometric_mean() -> None:
    found = cells(measured())
    assert list(found) == [*WORKS, "geometric mean"]
    assert [mark for _text, mark in found["one"]] == ["base", "slower-5", "faster-4"]
    assert [mark for _text, mark in found["many"]] == ["base", "slower-2", "faster-3"]
    assert found["wide"][1][1] == "equivalent"
    assert [text for text, _mark in found["geometric mean"]] == ["×1", "×1.533", "×1.339"]


@pytest.mark.parametrize(
    ("low", "high", "mark"),
    [
        (1.02, 1.04, "slower-1"),
        (1.001, 1.02, "inconclusive"),
        (1.001, 1.009, "equivalent"),
        (0.5, 0.7, "faster-4"),
        (None, None, "inconclusive"),
    ],
)
def test_the_margin_marks_a_geometric_mean_as_it_marks_a_cell(
    low: float | None, high: float | None, mark: str
) -> None:
    run = measured()
    (mean, *_others) = run.summary["geometric_means"]
    mean |= {"low": low, "high": high, "ratio": math.sqrt((low or 1) * (high or 1))}
    assert cells(run)["geometric mean"][1][1] == mark


def test_what_a_layer_lacks_is_no_number_and_is_left_out_of_the_mean() -> None:
    run = measured(lacking="wide")
    found = cells(run)
    assert found["wide"][2] == ("–", "unknown")
    assert found["geometric mean"][2][0] == "×0.632"
    (setting,) = suite.settings(read(run))
    assert "It leaves out wide." in suite.note([setting])
    (chart,) = [suite.bars(setting, [setting])]
    assert chart["series"][2]["values"][2] is None


def test_a_workload_that_the_base_layer_lacks_names_its_own_base() -> None:
    run = measured(lacking="wide", layer="libpq")
    (setting,) = suite.settings(read(run))
    table = suite.heat_map(setting, [setting])
    assert "ratio to libpq (C), psycopg 3 for wide, with" in table.caption
    cells_of_wide = cells(run)["wide"]
    assert [text for text, _mark in cells_of_wide[:2]] == ["–", "100 µs"]
    assert suite.bars(setting, [setting])["rows"] == [["one"], ["many"], ["wide", "over psycopg 3"]]


def test_the_chart_has_the_quotients_of_the_throughputs_that_the_tables_show() -> None:
    """Not the inverse of the time ratio: published figures beside it are such quotients too."""
    run = measured()
    base = run.variants.get(workload="one", layer="libpq")
    run.variants.filter(workload="one", layer="psycopg").update(ops_per_s=base.ops_per_s / 4)
    (setting,) = suite.settings(read(run))
    series = suite.bars(setting, [setting])["series"]
    assert [each["values"][0] for each in series[:2]] == [1.0, 0.25]


def test_the_means_name_the_layer_that_they_are_relative_to() -> None:
    """Two workloads lack libpq, so most ratios are relative to another layer; no mean is."""
    (setting,) = suite.settings(read(measured(lacking="one many", layer="libpq")))
    assert setting.base == ("psycopg", 1)
    (headline,) = suite.headlines([setting])
    assert headline.startswith(
        "socket: geometric mean of the time over libpq (C) in 1 workload: psycopg 3 ×1.00"
    )
    chart = suite.mean_chart(setting)
    assert (chart["axis"], "relative to libpq (C)." in chart["label"]) == (
        "time relative to libpq (C) (above 1: slower)",
        True,
    )
    assert {row[0]: round(value, 2) for row, value in zip(chart["rows"], chart["values"], strict=True)} == {
        "libpq (C)": 1, "psycopg 3": 1, "asyncpg": 6
    }  # fmt: skip
    head, *means = suite.heat_map(setting, [setting]).rows[-1]
    assert head.text == "geometric mean, over libpq (C)"
    titles = map(setting.column_title, setting.columns)
    assert {title: cell.text for title, cell in zip(titles, means, strict=True)}["libpq (C)"] == "×1"


def in_two_modes(*layers: str) -> Run:
    """psycopg has mode simple only, asyncpg prepared only, libpq both. `layers`: these, else all."""
    layers = layers or LAYERS
    works = tuple(WorkloadDefinition(name, "SELECT 1") for name in WORKS)
    modes = {"libpq": ("simple", "prepared"), "psycopg": ("simple",), "asyncpg": ("prepared",)}
    asked = Definition("suite", works, layers, ("socket",), modes=("simple", "prepared"), blocks=6, rounds=3)
    variants = [
        replace(variant(layer, mode=mode), workload=name, named=True)
        for name in WORKS
        for layer in layers
        for mode in modes[layer]
    ]
    run = factories.make_run(definition=json.loads(json.dumps(asked.to_json())))
    store.save_summary(run, summarise(asked, variants, blocks(variants, 6, 3, us), "psycopg"))
    return run


def test_a_layer_that_lacks_the_mode_stands_there_in_its_own() -> None:
    found = suite.settings(read(in_two_modes()))
    assert [setting.like.mode for setting in found] == ["simple", "prepared"]
    titles = [[setting.column_title(column) for column in setting.columns] for setting in found]
    assert titles == [
        ["libpq (C)", "psycopg 3", "asyncpg · prepared"],
        ["libpq (C)", "asyncpg", "psycopg 3 · simple"],
    ]
    for setting in found:
        rows = suite.heat_map(setting, found).rows
        assert [cell.text for cell in rows[-1]][1:] in (
            ["×1", "×1.533", "×1.339"],
            ["×1", "×1.339", "×1.533"],
        )
        assert {row[1].mark for row in rows} == {"base"}
    assert suite.heat_map(found[1], found).rows[0][3].mark == "slower-5"
    assert suite.bars(found[1], found)["series"][2]["values"] == pytest.approx(
        [1 / 3, 1 / 1.2, 1.0], rel=1e-3
    )


def test_two_layers_may_be_guests_of_each_others_mode() -> None:
    run = in_two_modes("psycopg", "asyncpg")
    found = suite.settings(read(run))
    titles = [[setting.column_title(column) for column in setting.columns] for setting in found]
    assert titles == [["psycopg 3", "asyncpg · prepared"], ["asyncpg", "psycopg 3 · simple"]]
    ratios = [mean.ratio for setting in found for mean in setting.means]
    assert math.prod(ratios) == pytest.approx(1.0)
    assert len(suite.headlines(found)) == 2
    assert run_page.result(run).part("suite") is not None


def test_the_answer_is_about_the_setting_that_the_verdict_s_variant_is_in() -> None:
    run = in_two_modes()
    rows = read(run)
    (last,) = judged(rows)
    assert suite_settings(rows)[0].like.mode == last.mode
    assert judged_column(rows) == (last.layer, last.workers)


def test_at_a_rate_no_throughput_is_relative_to_another(admin_client: Any) -> None:
    run = measured()
    run.variants.update(rate=100.0, schedule="constant")
    part: Any = run_page.result(run).part("suite")
    assert [each["chart"] for each in part["settings"]] == [None]
    text = admin_client.get(f"/admin/pgperf/run/{run.pk}/change/").content.decode()
    assert 'class="pgperf-table numbers heat"' in text
    assert "chart-suite-" not in text


def sentences(run: Run, words: dict[str, str]) -> list[str]:
    """The bottlenecks of the suite, where the last layer has these verdicts by workload."""
    for row in run.variants.filter(layer="asyncpg"):
        row.verdict = factories.stored_verdict(words[row.workload])
        row.save()
    return verdicts.suite_headlines(list(run.variants.all()))


def test_one_sentence_names_the_bottleneck_of_every_workload() -> None:
    run = measured()
    words = {"one": "server_cpu", "many": "client_cpu", "wide": "client_cpu"}
    assert sentences(run, words) == [
        "asyncpg · socket: client CPU in 2 of 3 workloads (many, wide); server CPU in 1 of 3 workloads (one)."
    ]
    assert sentences(run, dict.fromkeys(WORKS, "client_cpu")) == [
        "asyncpg · socket: client CPU in all 3 workloads."
    ]


def test_two_bottlenecks_of_a_workload_are_named_in_either_order() -> None:
    run = measured()
    either = {"one": ("client", "server"), "many": ("server", "client")}
    sentences(run, {"one": "client_cpu", "many": "server_cpu", "wide": "client_cpu"})
    for row in run.variants.filter(layer="asyncpg", workload__in=either):
        lead = Lead(*either[row.workload], 2.0, -3.0, 6.0)
        row.verdict = factories.stored_verdict(row.verdict["word"], lead=lead)
        row.save()
    assert verdicts.suite_headlines(list(run.variants.all())) == [
        "asyncpg · socket: client CPU or server CPU in 2 of 3 workloads (one, many);"
        " client CPU in 1 of 3 workloads (wide)."
    ]


def test_a_disturbed_workload_has_no_bottleneck_and_comes_last() -> None:
    run = measured()
    words = {"one": "disturbed", "many": "disturbed", "wide": "client_cpu"}
    assert sentences(run, words) == [
        "asyncpg · socket: client CPU in 1 of 3 workloads (wide);"
        " not known (other work disturbed it) in 2 of 3 workloads (one, many)."
    ]


def test_one_workload_with_a_verdict_is_one() -> None:
    run = measured()
    run.variants.exclude(workload="one").delete()
    assert sentences(run, {"one": "server_cpu"}) == ["asyncpg · socket: server CPU in 1 workload."]


def test_a_workload_that_the_last_layer_lacks_is_not_counted() -> None:
    found = sentences(measured(lacking="wide"), {"one": "server_cpu", "many": "client_cpu"})
    assert found == [
        "asyncpg · socket: server CPU in 1 of 2 workloads (one); client CPU in 1 of 2 workloads (many)."
    ]


def test_the_page_of_a_suite_has_the_sentence_and_no_verdict_of_one_workload(admin_client: Any) -> None:
    run = measured()
    (sentence,) = sentences(run, dict.fromkeys(WORKS, "client_cpu"))
    text = admin_client.get(f"/admin/pgperf/run/{run.pk}/change/").content.decode()
    assert f"<p>{sentence}</p>" in text
    part = run_page.result(run).part("answer")
    assert part is not None
    assert part["points"][0].sentences == (sentence,)


@pytest.mark.parametrize(
    ("ratio", "name"),
    [
        (1.02, "slower-1"), (0.98, "faster-1"), (1.2, "slower-2"), (1 / 1.3, "faster-3"), (9.0, "slower-6"),
        (0.1, "faster-6"),
    ],
)  # fmt: skip
def test_the_shade_is_the_same_for_a_ratio_and_its_reciprocal(ratio: float, name: str) -> None:
    assert suite.heat(ratio) == name
    assert suite.heat(1 / ratio).split("-")[1] == name.split("-")[1]


def test_the_page_has_a_heat_map_instead_of_a_ladder_for_each_workload(admin_client: Any) -> None:
    run = measured()
    names = [section.name for section in run_page.result(run).sections]
    assert "suite" in names
    assert not {"ladder", "layers"} & set(names)
    text = admin_client.get(f"/admin/pgperf/run/{run.pk}/change/").content.decode()
    assert "geometric mean of the time over libpq" in text
    assert 'class="pgperf-table numbers heat"' in text


def test_table_and_chart_each_say_which_direction_is_slower() -> None:
    """The table is of times and the chart of throughput, so their sides of 1 differ."""
    (setting,) = found = suite.settings(read(measured()))
    assert "(above 1: slower)" in suite.heat_map(setting, found).caption
    assert suite.bars(setting, found)["axis"] == "throughput relative to libpq (C) (above 1: faster)"


def test_the_figures_have_percentiles_and_the_variation() -> None:
    run = measured()
    known = {"mean": 200.0, "stddev": 50.0, "p50": 190.0, "p95": 260.0, "p99": 300.0}
    run.variants.filter(layer="psycopg").update(latency_us=known)
    run.variants.filter(layer="asyncpg").update(latency_us={})
    (setting,) = suite.settings(read(run))
    rows = {
        row[1].text: [cell.text for cell in row[6:11]] for row in suite.number_table(setting, [setting]).rows
    }
    assert rows["psycopg 3"] == ["190", "260", "300", "50.0", "25.0 %"]
    assert rows["asyncpg"][-1] == "–"


def test_two_workloads_keep_their_ladders() -> None:
    sections = {section.name for section in run_page.result(measured(WORKS[:2])).sections}
    assert {"answer", "ladder"} <= sections
    assert "suite" not in sections


def test_json_and_csv_have_the_geometric_means() -> None:
    run = measured()
    found = run_json(run)["geometric_means"]
    assert [each["layer"] for each in found] == ["psycopg", "asyncpg"]
    assert found[0]["workloads"] == list(WORKS)
    lines = means_csv(run).splitlines()
    assert len(lines) == 3
    assert "one many wide" in lines[1]
    assert len(means_csv(measured(WORKS[:2])).splitlines()) == 1


def named_means(run: Run) -> list[tuple[str, ...]]:
    """The rows of the table as pages have it, without figures."""
    table = suite.mean_table(read(run)).shown()
    figures = {"ratio", "low", "high", "blocks"}
    named = [place for place, column in enumerate(table.columns) if not figures & set(column.keys)]
    return [tuple(row[place].text for place in named) for row in table.rows]


@pytest.mark.parametrize(
    ("more", "column"),
    [
        ({}, "Mode compared with"),
        ({"environment": "new"}, "Python environment"),
        ({"rate": 500.0}, "Rate"),
        ({"hosts": 2}, "Load hosts"),
    ],
)
def test_the_rows_of_the_means_can_be_told_apart(more: dict[str, Any], column: str) -> None:
    run = in_two_modes()
    if more:
        means = [mean for mean in run.summary["geometric_means"] if mean["base_mode"] == mean["mode"]]
        run.summary["geometric_means"] = [*means, *({**mean, **more} for mean in means)]
        run.save()
    found = named_means(run)
    assert len(found) == len(set(found)) == 4
    shown = {each.title for each in suite.mean_table(read(run)).shown().columns}
    assert shown & {"Mode compared with", "Python environment", "Rate", "Load hosts"} == {column}


def test_each_number_of_load_hosts_has_its_own_means() -> None:
    run = measured()
    for row in run.variants.all():
        row.pk, row.hosts, row.position = None, 2, row.position + 100
        row.label = f"{row.label} · 2 load hosts"
        row.save(force_insert=True)
    means = run.summary["geometric_means"]
    run.summary["geometric_means"] = [*means, *({**mean, "hosts": 2, "ratio": 9.0} for mean in means)]
    run.save()
    own, hosted = suite.settings(read(run))
    assert {mean.ratio for mean in hosted.means} == {9.0}
    assert 9.0 not in {mean.ratio for mean in own.means}
    assert suite.setting_title(hosted, [own, hosted]).endswith("2 load hosts")
