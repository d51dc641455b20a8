"""Comparisons as tables and sentences."""

import pytest

from pgperf.models import ComparisonResult, Run, VariantResult
from pgperf.reports import comparisons
from pgperf.reports.run_rows import read
from tests import factories
from tests.reports.reading import texts


@pytest.fixture
def run(db: None) -> Run:
    return factories.make_results(factories.make_run())


def test_each_kind_of_comparison_has_its_table(run: Run) -> None:
    rows = read(run).comparisons
    layers, routes = comparisons.comparison_tables(rows)
    assert texts(layers)[0][:3] == ["psycopg2 · socket", "libpq (C)", "differs"]
    assert texts(routes)[0][:2] == ["libpq (C) · tcp", "socket"]
    controls = comparisons.control_table(rows)
    assert texts(controls)[0][:2] == ["libpq (C) · socket · control 1", "itself"]
    assert (texts(controls)[0][2], texts(controls)[0][7]) == ("inconclusive", "2.1 %")
    assert len(layers.rows) + len(routes.rows) + len(controls.rows) == run.comparisons.count()


def test_baseline_is_named_by_the_fields_that_differ() -> None:
    row = _comparison(_row("psycopg", mode="prepared", clients=8), _row("libpq"))
    assert comparisons.baseline_text(row) == "libpq (C) · simple · 1 client"
    row = _comparison(_row("psycopg", route="tcp"), _row("psycopg", route="socket"))
    assert comparisons.baseline_text(row) == "socket"


def test_numeric_columns_have_numeric_headings(run: Run) -> None:
    table = comparisons.comparison_tables(read(run).comparisons)[0]
    assert [column.numeric for column in table.columns] == [False] * 3 + [True] * 6


def test_a_change_of_workload_has_a_sentence_and_a_table() -> None:
    loop, cure = ({"workload": name, "named": True} for name in ("loop", "cure"))
    rows = [
        _comparison(_row("libpq", **cure), _row("libpq", **loop), -190.0),
        _comparison(_row("django_orm", **cure), _row("django_orm", **loop), -2310.0),
        _comparison(_row("django_orm", **loop), _row("libpq", **loop), 99.0),
        _comparison(_row("libpq", control=1, **loop), _row("libpq", **loop), 0.0),
    ]
    assert comparisons.workload_headlines(rows) == [
        "tcp: cure instead of loop saves 2,310 µs in Django ORM, 190 µs in libpq (C)."
    ]
    rows[0].delta_us = 5.0
    assert comparisons.workload_headlines(rows) == [
        "tcp: cure instead of loop changes −2,310 µs in Django ORM, +5.00 µs in libpq (C)."
    ]
    rows[0].outcome = "inconclusive"
    assert comparisons.workload_headlines(rows) == [
        "tcp: cure instead of loop saves 2,310 µs in Django ORM. "
        "tcp: no significant difference between loop and cure in libpq (C)."
    ]


def test_layers_at_several_loads_are_told_apart() -> None:
    rows = [
        _comparison(
            _row("django_orm", workload="cure", named=True, clients=clients),
            _row("django_orm", workload="loop", named=True, clients=clients),
            delta_us,
        )
        for clients, delta_us in ((1, -5.0), (8, -9.0), (32, -1.0))
    ]
    rows[2].outcome = "inconclusive"
    assert comparisons.workload_headlines(rows) == [
        "tcp: cure instead of loop saves 9.00 µs in Django ORM · 8 clients, 5.00 µs in Django ORM · 1 client. "
        "tcp: no significant difference between loop and cure in Django ORM · 32 clients."
    ]


def test_a_change_of_environment_has_a_sentence_and_a_table() -> None:
    rows = [
        _comparison(_row("psycopg", environment="new"), _row("psycopg"), -4.0),
        _comparison(_row("django_orm", environment="new"), _row("django_orm"), -21.0),
        _comparison(_row("psycopg", environment="newer"), _row("psycopg"), 1.0),
        _comparison(_row("psycopg", environment="new"), _row("libpq"), 9.0),
    ]
    assert comparisons.environment_headlines(rows) == [
        "tcp: new instead of default saves 21.0 µs in Django ORM, 4.00 µs in psycopg 3.",
        "tcp: newer instead of default changes +1.00 µs in psycopg 3.",
    ]
    first, second = comparisons.comparison_tables(rows)
    assert first.caption == "One Python environment against another, layer by layer"
    assert texts(first)[0][:2] == ["psycopg 3 · tcp · new", "default"]
    assert len(second.rows) == 1


def test_modes_of_a_layer_have_a_table() -> None:
    rows = [_comparison(_row("psycopg", mode="prepared"), _row("psycopg"), -4.0)]
    assert [(each.caption, texts(each)[0][1]) for each in comparisons.comparison_tables(rows)] == [
        ("One statement mode against another", "simple")
    ]


def test_a_change_of_clients_is_no_change_of_workload() -> None:
    rows = [
        _comparison(_row("libpq", clients=16), _row("libpq", clients=8), 700.0),
        _comparison(_row("libpq", clients=32), _row("libpq", clients=8), 1900.0),
        _comparison(
            _row("django_orm", clients=8, connect="per_operation"),
            _row("django_orm", connect="per_operation"),
            250.0,
        ),
    ]
    assert comparisons.workload_headlines(rows) == []
    assert [(table.caption, len(table.rows)) for table in comparisons.comparison_tables(rows)] == [
        ("More clients", 3)
    ]


@pytest.mark.parametrize("odd", ["a · b", "8 clients", "control 1", "libpq · tcp · ", " · ", "prepared"])
def test_names_that_look_like_labels_change_no_table(odd: str) -> None:
    """Code asks the fields of a variant: no name of a route or a workload can be taken for another
    part.
    """
    first, second = ({"workload": name, "named": True} for name in ("loop", odd))
    rows = [
        _comparison(_row("libpq", route=odd, **second), _row("libpq", route=odd, **first), -190.0),
        _comparison(_row("libpq", route=odd, clients=8), _row("libpq", route=odd), 10.0),
        _comparison(_row("psycopg", route=odd), _row("libpq", route=odd), 10.0),
        _comparison(_row("libpq", route=odd), _row("libpq", route="tcp"), 10.0),
    ]
    tables = comparisons.comparison_tables(rows)
    assert [table.caption for table in tables] == [
        "One workload against the other, layer by layer",
        "More clients",
        "One layer against another",
        "One route against another",
    ]
    assert [texts(table)[0][1] for table in tables] == ["loop", "1 client", "libpq (C)", "tcp"]
    assert comparisons.workload_headlines(rows) == [
        f"{odd}: {odd} instead of loop saves 190 µs in libpq (C)."
    ]


def _row(layer: str, **fields: object) -> VariantResult:
    usual = {"workload": "loop", "mode": "simple", "route": "tcp", "clients": 1, "connect": "persistent"}
    return VariantResult(layer=layer, placement="apart", **{**usual, **fields})


def _comparison(variant: VariantResult, baseline: VariantResult, delta_us: float = 1.0) -> ComparisonResult:
    return ComparisonResult(
        variant=variant, baseline=baseline, ratio=0.5, delta_us=delta_us, outcome="differs", pairs=12,
        aa=bool(variant.control),
    )  # fmt: skip
