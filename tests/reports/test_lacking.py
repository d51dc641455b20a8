"""What one of two runs lacks, told in as few lines as explain it."""

from dataclasses import replace

from pgperf.analysis.run_comparison import Level
from pgperf.core.records import Variant
from pgperf.reports.lacking import lacking

FIRST = Variant(
    workload="query", layer="libpq", mode="simple", route="socket", clients=1, connect="persistent",
    placement="apart",
)  # fmt: skip


def measured(*variants: Variant) -> dict[str, Level]:
    return {each.label: Level(each, ((1.0, 1.1),)) for each in variants}


def grid(layers: tuple[str, ...], routes: tuple[str, ...]) -> dict[str, Level]:
    return measured(*(replace(FIRST, layer=layer, route=route) for layer in layers for route in routes))


def test_a_layer_or_a_route_that_a_run_lacks_entirely_is_one_line() -> None:
    wide, narrow = (
        grid(("libpq", "psycopg2"), ("socket", "tcp", "pooled")),
        grid(("libpq",), ("socket", "tcp")),
    )
    found = lacking(wide, narrow)
    assert [each.sentence("#1", "#2") for each in found] == [
        "The route pooled was not measured in #2 (1 variant).",
        "psycopg2 was not measured in #2 (3 variants).",
    ]
    assert [*map(str, found)] == ["route pooled (1 variant)", "psycopg2 (3 variants)"]
    assert sorted(label for each in found for label in each.labels) == sorted(set(wide) - set(narrow))
    assert lacking(narrow, wide) == []


def test_a_variant_whose_layer_and_route_the_other_run_has_is_named() -> None:
    corner = replace(FIRST, layer="psycopg2", route="tcp")
    own = measured(FIRST, corner, replace(FIRST, route="tcp"))
    other = measured(replace(FIRST, route="tcp"), replace(corner, route="socket"))
    assert [each.sentence("#1", "#2") for each in lacking(own, other)] == [
        "libpq (C) · socket was measured in #1 and not in #2.",
        "psycopg2 · tcp was measured in #1 and not in #2.",
    ]
