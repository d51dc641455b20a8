"""Ladders as charts, tables and sentences."""

import re
from dataclasses import replace

import pytest
from django.test import Client
from django.urls import reverse

from pgperf.analysis.ladder import Ladder, Step
from pgperf.models import Run
from pgperf.reports import ladders
from pgperf.reports.run_rows import read
from tests import factories, page_run
from tests.reports.reading import texts


@pytest.fixture
def run(db: None) -> Run:
    return factories.make_results(factories.make_run())


def test_the_segments_of_a_bar_add_up_to_the_last_rung(run: Run) -> None:
    found = read(run).ladders
    chart = ladders.time_split(found)
    for row, ladder in enumerate(found):
        total = sum(series["values"][row] for series in chart["series"])
        assert total == pytest.approx(ladder.steps[-1].us)
    assert chart["rows"] == [["socket"], ["tcp"], ["pgbouncer"]]
    assert [series["name"] for series in chart["series"]] == [
        "libpq (C)",
        "psycopg 3",
        "Django cursor",
        "Django ORM",
    ]


def test_a_bar_with_a_layer_left_of_zero_says_where_it_ends_and_what_the_whole_is(run: Run) -> None:
    found = read(run).ladders
    first, below, *_others, last = found[0].steps
    times = {first: (500.0, 500.0), below: (293.0, -207.0), last: (2328.0, 2035.0)}
    steps = tuple(replace(step, us=us, step_us=step_us) for step, (us, step_us) in times.items())
    ends = ladders.time_split([replace(found[0], steps=steps), *found[1:]])["ends"]
    assert ends[0] == "2,535 − 207 = 2,328 µs"
    assert "−" not in "".join(ends[1:])


def test_a_rung_s_baseline_is_the_one_below_and_a_side_rung_s_the_first(run: Run) -> None:
    found = read(run).ladders
    chart = ladders.ladder_chart(found[0], found)
    assert chart["stands_on"] == [-1, 0, 1, 2, 0]
    assert chart["values"] == [rung.us for rung in (*found[0].steps, *found[0].side)]
    assert chart["whiskers"][0] == [found[0].steps[0].low, found[0].steps[0].high]
    assert chart["rows"][-1] == ["psycopg2", "alternative"]


@pytest.fixture
def page(db: None) -> Run:
    """libpq to the view over two routes, and three web servers, the last of which saves time."""
    return page_run.make_run()


def test_a_ladder_goes_on_with_the_web_servers_above_the_view(page: Run) -> None:
    found = read(page).ladders
    assert [ladder.route for ladder in found] == ["tcp", "socket"]
    chart = ladders.ladder_chart(found[0], found)
    assert chart["rows"][3:] == [
        ["ORM, view and template"], ["HTTP", "web_gunicorn"], ["HTTP", "web_nginx"], ["HTTP", "web_conn_kept"],
        ["psycopg2", "alternative"],
    ]  # fmt: skip
    assert chart["stands_on"] == [-1, 0, 1, 2, 3, 4, 5, 0]
    assert texts(ladders.ladder_table(found[0], found))[5][0] == "HTTP, web_nginx"
    assert ladders.headlines(found)[0].startswith("tcp: HTTP · web_conn_kept takes ×4.")
    assert read(page).off_ladders == []


def test_a_step_that_saves_time_says_where_it_begins_and_ends(page: Run) -> None:
    found = read(page).ladders
    *_lower, below, kept = found[0].steps
    assert kept.step_us == pytest.approx(kept.us - below.us)
    assert kept.step_us < -7_000
    ends = ladders.ladder_chart(found[0], found)["ends"]
    assert ends[6] == "19.0 − 7.69 = 11.3 ms  ×4.52"
    assert not any("−" in end for at, end in enumerate(ends) if at != 6)


def test_what_all_web_servers_add_is_one_segment(page: Run) -> None:
    ladder, *_others = found = read(page).ladders
    *_series, http = ladders.time_split(found)["series"]
    view, last = ladder.steps[-4], ladder.steps[-1]
    assert http["name"] == "HTTP"
    assert http["values"] == [pytest.approx((last.us - view.us) / 1000), None]


def test_all_ladders_share_one_scale(run: Run) -> None:
    found = read(run).ladders
    highest = max(step.high for ladder in found for step in ladder.steps)
    assert {ladders.ladder_chart(ladder, found)["max"] for ladder in found} == {highest}


def test_a_very_long_whisker_does_not_flatten_the_bars(run: Run) -> None:
    found = read(run).ladders
    longest = max(step.us for ladder in found for step in ladder.steps)
    first, *rest = found[0].steps
    wild = replace(found[0], steps=(replace(first, high=100 * longest), *rest))
    assert ladders.ladder_chart(wild, [wild, *found[1:]])["max"] == 2 * longest


def test_a_ladder_s_title_names_the_fields_that_differ() -> None:
    one = Ladder("w", "tcp", "simple", 1, "apart", "psycopg", ())
    assert ladders.ladder_title(one, [one]) == "tcp"
    assert ladders.ladder_title(one, [one, replace(one, clients=8)]) == "tcp · 1 client"
    assert ladders.ladder_title(one, [one, replace(one, mode="prepared")]) == "tcp · simple"
    assert ladders.ladder_title(one, [one, replace(one, connect="per_operation")]) == "tcp · persistent"


def test_the_titles_of_all_ladders_are_those_of_each() -> None:
    one = Ladder("w", "tcp", "simple", 1, "apart", "psycopg", ())
    several = [one, replace(one, clients=8), replace(one, route="socket", mode="prepared")]
    assert ladders.ladder_titles(several) == [ladders.ladder_title(each, several) for each in several]
    assert ladders.ladder_titles(several)[2] == "socket · prepared · 1 client"


def test_a_ladder_of_several_workers_counts_connections() -> None:
    """One process with 10 workers, and 10 processes with one, are 10 connections."""
    workers = Ladder("w", "tcp", "simple", 10, "apart", "psycopg", (), workers=10)
    processes = replace(workers, workers=1)
    assert [ladders.load_title(each) for each in (workers, processes)] == ["10 connections", "10 clients"]
    fewer = replace(workers, clients=5, workers=5)
    assert ladders.ladder_title(workers, [workers, fewer]) == "tcp · 10 connections"


def test_a_stored_ladder_without_workers_has_one() -> None:
    stored = Ladder("w", "tcp", "simple", 10, "apart", "psycopg", ()).to_json()
    del stored["workers"], stored["connect"]
    assert Ladder.from_json(stored).workers == 1
    assert Ladder.from_json(stored).connect == "persistent"


def _climb(driver: str, *layers: str) -> Ladder:
    ends = (None, None)
    steps = (
        Step(layer, layer, 10.0 * at, *ends, 10.0, *ends, float(at), *ends)
        for at, layer in enumerate(layers, 1)
    )
    return Ladder("w", "socket", "simple", 1, "apart", driver, tuple(steps))


def test_two_ladders_are_split_by_the_same_parts_in_the_order_of_the_rungs() -> None:
    own = _climb("psycopg", "libpq", "psycopg", "django_cursor", "django_orm")
    other = _climb("psycopg2", "libpq", "psycopg2", "django_cursor_psycopg2", "django_orm_psycopg2")
    chart = ladders.time_split([own, other])
    assert chart["rows"] == [["socket", "psycopg"], ["socket", "psycopg2"]]
    assert [(series["name"], series["values"]) for series in chart["series"]] == [
        ("libpq (C)", [10.0, 10.0]),
        ("psycopg 3", [10.0, None]),
        ("psycopg2", [None, 10.0]),
        ("Django cursor", [10.0, 10.0]),
        ("Django ORM", [10.0, 10.0]),
    ]


def test_the_ladder_s_table_has_the_exact_values_behind_its_texts(run: Run) -> None:
    ladder = read(run).ladders[0]
    table = ladders.ladder_table(ladder, read(run).ladders)
    assert texts(table)[0] == ["libpq (C)", "68.9", "67.9 … 70.1", "–", "–", "×1.000", "–"]
    assert texts(table)[3][:4] == ["Django ORM", "215", "211 … 218", "+125"]
    assert [row[1].value for row in table.rows[:4]] == [step.us for step in ladder.steps]
    assert texts(table)[4][0] == "psycopg2, alternative"


def test_a_headline_is_a_sentence(run: Run) -> None:
    assert ladders.headlines(read(run).ladders)[0] == (
        "socket: Django ORM takes ×3.12 the time of libpq (C), 146 µs more per operation."
    )


def test_a_faster_top_takes_less(run: Run) -> None:
    """A page whose web servers have more CPUs than its view in process."""
    ladder = read(run).ladders[0]
    first, last = ladder.steps[0], ladder.steps[-1]
    faster = replace(ladder, steps=(first, replace(last, us=first.us / 2, ratio=0.5)))
    (said,) = ladders.headlines([faster])
    assert re.search(r"takes ×0\.500 the time of libpq \(C\), [\d.]+ µs less per operation\.$", said)


def test_figures_of_an_older_version_are_not_said_to_agree(run: Run, admin_client: Client) -> None:
    def page() -> str:
        return admin_client.get(reverse("admin:pgperf_run_change", args=[run.pk])).content.decode()

    assert page().count("come from one fit") == 2
    Run.objects.filter(pk=run.pk).update(analysis_version=5)
    assert "one fit" not in page()
    assert "are separate estimates from the blocks" in page()
