"""The figures of a run agree when a reader divides or subtracts them: on pages, in files, in JSON and
in the terminal, for any run.
"""

import csv
import io
import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from django.template.loader import render_to_string
from hypothesis import given, settings
from hypothesis import strategies as st

from pgperf.analysis.ladder import Ladder
from pgperf.analysis.run_comparison import OVER, Level, changes
from pgperf.analysis.summary import summarise
from pgperf.cli import text_table
from pgperf.core.records import Definition, Variant, VariantBlock
from pgperf.models import ComparisonResult, Run, VariantResult
from pgperf.reports import csv_results, ladders, result_keys, throughput
from pgperf.reports.comparisons import comparison_tables
from pgperf.reports.run_json import rows_json
from pgperf.reports.run_rows import RunRows
from pgperf.reports.sections import connections, requests
from pgperf.runner.plan import make_plan
from pgperf.runs import store
from tests import page_run
from tests.analysis.synthetic import block, definition, variant

LAYERS = ("libpq", "psycopg2", "psycopg", "django_cursor", "django_orm")
US = dict(zip(LAYERS, (60.0, 64.0, 70.0, 90.0, 210.0), strict=True))
ROUTES = ("socket", "pgbouncer")
SHAPES = st.tuples(
    st.integers(0, 10_000), st.integers(1, 7), st.integers(1, 4), st.sampled_from((0.4, 0.8, 1.0))
)


def rows(seed: int, count: int, rounds: int, present: float) -> RunRows:
    """A run of heavy-tailed times on a drifting machine, in which some blocks lack some variants."""
    rng = np.random.default_rng(seed)
    asked = [variant(layer, route, clients=n) for n in (1, 4) for route in ROUTES for layer in LAYERS]
    asked.append(variant("libpq", control=1))
    found = list(_blocks(asked, _us, rng, count, rounds, present))
    return _rows(definition(routes=ROUTES), asked, found)


def page_rows(seed: int, count: int, rounds: int, present: float) -> RunRows:
    """The same of a page and its web servers, in times of one unit."""
    rng, of_page = np.random.default_rng(seed), page_run.definition()
    asked = list(make_plan(of_page).variants)
    found = list(_blocks(asked, lambda of: page_run.us_of(of) / 100, rng, count, rounds, present))
    return _rows(of_page, asked, found)


def _us(of: Variant) -> float:
    return US[of.layer] * (1 + 0.2 * (of.route != "socket")) * of.clients**0.7


def _blocks(
    asked: list[Variant],
    us: Callable[[Variant], float],
    rng: np.random.Generator,
    count: int,
    rounds: int,
    present: float,
) -> Iterator[VariantBlock]:
    drift = rng.lognormal(0, 0.3, count)
    for number in range(count):
        for of in asked:
            if rng.random() < present:
                yield block(of, number, us(of) * drift[number] * np.exp(0.05 * rng.standard_t(2, rounds)))


def _rows(of_run: Definition, asked: list[Variant], found: list[VariantBlock]) -> RunRows:
    summary = summarise(of_run, asked, found, "psycopg")
    run = Run(pk=1, status=Run.Status.DONE, definition=of_run.to_json(), environment={})
    run.summary = store.finite({k: v for k, v in summary.items() if k not in ("variants", "comparisons")})
    variants = [
        VariantResult(pk=pk, run=run, **store.finite(each)) for pk, each in enumerate(summary["variants"])
    ]
    by_identity = {row.identity: row for row in variants}
    comparisons = [
        ComparisonResult(run=run, **store.finite(store._comparison_row(each, by_identity)))
        for each in summary["comparisons"]
    ]
    return RunRows(run, variants, comparisons)


def check(ratio: float, step: float, own: float, base: float) -> None:
    assert ratio == pytest.approx(own / base, rel=1e-9)
    assert step == pytest.approx(own - base, rel=1e-9, abs=1e-9)


@settings(max_examples=25, deadline=None)
@given(SHAPES)
def test_one_run(shape: tuple[int, int, int, float]) -> None:
    shown = rows(*shape)
    check_json(shown)
    check_csv(shown)
    check_tables_of_pages_and_of_the_terminal(shown)


@settings(max_examples=10, deadline=None)
@given(SHAPES)
def test_a_page_and_its_web_servers(shape: tuple[int, int, int, float]) -> None:
    shown = page_rows(*shape)
    check_json(shown)
    check_csv(shown)
    check_tables_of_pages_and_of_the_terminal(shown)


def check_json(shown: RunRows) -> None:
    found = json.loads(json.dumps(rows_json(shown), allow_nan=False))
    us = {each["label"]: each["us_per_op"] for each in found["variants"]}
    rate = {each["label"]: each["ops_per_s"] for each in found["variants"]}
    for each in found["comparisons"]:
        check(each["ratio"], each["delta_us"], us[each["variant"]], us[each["baseline"]])
    for ladder in found["ladders"]:
        _check_ladder(ladder, us)
    for curve in found["scaling"]:
        first, *rest = curve["points"]
        for point in rest:
            if point["efficiency"] is not None:
                share = point["ops_per_s"] / first["ops_per_s"] * first["clients"] / point["clients"]
                assert point["efficiency"] == pytest.approx(share)
        assert {point["ops_per_s"] for point in curve["points"]} <= {*rate.values()}


def _check_ladder(ladder: dict[str, Any], us: dict[str, float]) -> None:
    first = ladder["steps"][0]
    for below, step in zip(ladder["steps"], ladder["steps"][1:], strict=False):
        check(step["ratio"], step["us"] - first["us"], step["us"], first["us"])
        check(step["us"] / below["us"], step["step_us"], step["us"], below["us"])
    for side in ladder["side"]:
        check(side["ratio"], side["step_us"], side["us"], first["us"])
    for each in (*ladder["steps"], *ladder["side"]):
        assert each["us"] == pytest.approx(us[each["label"]], rel=1e-12)


def check_csv(shown: RunRows) -> None:
    with patch("pgperf.reports.csv_files.read", return_value=shown):
        variants, comparisons = (
            list(csv.DictReader(io.StringIO(make(shown.run))))
            for make in (csv_results.variants_csv, csv_results.comparisons_csv)
        )
    us = {each["label"]: float(each["us_per_op"]) for each in variants if each["us_per_op"]}
    for each in comparisons:
        check(float(each["ratio"]), float(each["delta_us"]), us[each["variant"]], us[each["baseline"]])


def check_tables_of_pages_and_of_the_terminal(shown: RunRows) -> None:
    """By the printed digits: each figure may be off by half of its last digit."""
    times = [row[5].text for row in throughput.throughput_table(shown.variants).rows]
    us = dict(zip((row.label for row in shown.variants), times, strict=True))
    for ladder in shown.ladders:
        _check_printed_ladder(text_table.text(ladders.ladder_table(ladder, shown.ladders)), ladder, us)
    for table in comparison_tables(shown.comparisons):
        for row in table.rows:
            variant_us, baseline_us = (us[str(cell.values[0])] for cell in row[:2])
            _check_printed(row[3].text, variant_us, baseline_us)
            _check_printed_step(row[5].text, variant_us, baseline_us)


def _check_printed_ladder(text: str, ladder: Ladder, us: dict[str, str]) -> None:
    _caption, _head, *lines = text.splitlines()
    cells = [re.split(r" {2,}", line) for line in lines]
    for at, (step, row) in enumerate(zip((*ladder.steps, *ladder.side), cells, strict=True)):
        assert row[1] == us[step.label]
        if at:
            below = cells[at - 1] if at < len(ladder.steps) else cells[0]
            _check_printed(row[5], row[1], cells[0][1])
            _check_printed_step(row[3], row[1], below[1])


def _check_printed(ratio: str, own: str, base: str) -> None:
    low, high = _ends(ratio)
    assert low <= _ends(own)[1] / max(_ends(base)[0], 1e-9)
    assert high >= _ends(own)[0] / _ends(base)[1]


def _check_printed_step(step: str, own: str, base: str) -> None:
    low, high = _ends(step)
    assert low <= _ends(own)[1] - _ends(base)[0] + 1e-9
    assert high >= _ends(own)[0] - _ends(base)[1] - 1e-9


def _ends(text: str) -> tuple[float, float]:
    """The least and the greatest number that is printed so."""
    digits = re.sub(r"[×+,]", "", text).replace("−", "-")
    half = 0.5 * 10.0 ** -len(digits.partition(".")[2])
    return float(digits) - half, float(digits) + half


@given(SHAPES, SHAPES)
@settings(max_examples=10, deadline=None)
def test_two_runs(one: tuple[int, int, int, float], other: tuple[int, int, int, float]) -> None:
    runs = [rows(*shape) for shape in (one, other)]
    us = [{row.identity: row.us_per_op for row in each.variants} for each in runs]
    for change in changes(*([*map(Level.from_json, each.run.summary["levels"])] for each in runs)):
        before, after = (times[change.variant] for times in us)
        if change.measure == OVER:
            bases = [times[change.base] for times in us]
            assert change.before == pytest.approx(before / bases[0])
            assert change.after == pytest.approx(after / bases[1])
            before, after = before - bases[0], after - bases[1]
        else:
            assert (change.before, change.after) == pytest.approx((before, after))
        assert change.ratio.centre == pytest.approx(change.after / change.before)
        assert change.delta.centre == pytest.approx(after - before, abs=1e-6)


SECTIONS = {
    "connections": (connections.part, result_keys.PHASES),
    "requests": (requests.part, ("connect", *result_keys.HTTP_PHASES)),
}


@pytest.mark.parametrize("name", SECTIONS)
def test_bars_of_phases_add_up_and_say_why_they_are_not_the_time_per_operation(name: str) -> None:
    make, phases = SECTIONS[name]
    part = make(_with_phases(rows(3, 6, 4, 1.0), phases))
    chart = part.get("phases") or part["chart"]
    bars = [sum(each) for each in zip(*(of["values"] for of in chart["series"]), strict=True)]
    for bar, end in zip(bars, chart["ends"], strict=True):
        low, high = _ends(end.removesuffix(" µs"))
        assert low <= bar <= high
    page = render_to_string(f"pgperf/sections/{name}.html", {"part": part})
    assert page.count(throughput.latency_note()) == 1


def _with_phases(shown: RunRows, phases: Sequence[str]) -> RunRows:
    """The same of operations of three phases: a few long ones raise their mean."""
    for row in shown.variants:
        mean = 1.2 * (row.us_per_op or 0.0)
        row.latency_us = dict.fromkeys(result_keys.LATENCY, mean)
        shares = zip(phases, (0.5, 0.3, 0.2), strict=True)
        row.phases_us = {phase: dict.fromkeys(result_keys.LATENCY, share * mean) for phase, share in shares}
        row.http = {"requests": 9, "errors": {}}
    return shown
