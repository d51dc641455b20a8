"""What an operation sends again, in the answer of a run."""

from typing import Any

import pytest

from pgperf.core.records import StatementTime, StatementTimes
from pgperf.models import Run
from pgperf.reports import answer
from pgperf.reports.answer import Point
from pgperf.reports.run_rows import read
from tests import factories, page_run

pytestmark = pytest.mark.django_db

AUTHOR = 'SELECT "author"."id", "author"."name", "author"."born" FROM "author" WHERE "author"."id" = ?'
SHORT = 'SELECT … FROM "author" WHERE "author"."id" = ?'


def captured(*texts: str) -> dict[str, Any]:
    each = [{"sql": text, "rows": 1} for text in texts]
    return {"statements": len(each), "rows": len(each), "each": each}


def sent(run: Run, captures: dict[str, Any], *times: StatementTimes) -> Point | None:
    more = {"captures": captures, "statement_times": [each.to_json() for each in times]}
    run.environment = {**run.environment, **more}
    return next((p for p in answer.points(read(run)) if p.question == "Repeated statements (N+1)"), None)


def timed(
    layer: str, route: str, *each: tuple[tuple[int, ...], float], name: str = "list-page"
) -> StatementTimes:
    return StatementTimes(name, layer, "simple", route, tuple(StatementTime(*one, None) for one in each))


@pytest.fixture
def run() -> Run:
    return page_run.make_run()


def test_a_statement_that_is_sent_again_has_its_cost_in_the_whole(run: Run) -> None:
    captures = {"list-page": captured("SELECT a FROM b", *[AUTHOR] * 12)}
    numbers = tuple(range(2, 14))
    point = sent(
        run,
        captures,
        timed("libpq", "tcp", ((1,), 60.0), (numbers, 70.0)),
        timed("django_cursor", "tcp", ((1,), 90.0), (numbers, 100.0)),
        timed("django_cursor", "socket", ((1,), 80.0), (numbers, 95.0)),
    )
    assert point
    whole = run.variants.get(layer="django_view", route="tcp").us_per_op
    assert point.sentences == (f"One statement is sent 12 times in one operation: 1,200 of {whole:,.0f} µs.",)
    assert [note.text for note in point.lines] == [
        SHORT,
        "Timed alone through Django cursor; the whole is ORM, view and template.",
    ]
    assert point.anchor == "captures"


def test_it_stands_between_what_is_added_and_how_sure(run: Run) -> None:
    assert sent(run, {"list-page": captured(*["x"] * 3)})
    questions = [point.question for point in answer.points(read(run))]
    assert questions[-3:] == ["Repeated statements (N+1)", "How sure", "What to do next"]


@pytest.mark.parametrize("calls", [0, 1, 2])
def test_a_statement_sent_twice_is_not_named(run: Run, calls: int) -> None:
    assert sent(run, {"list-page": captured("a", *[AUTHOR] * calls)}) is None


def test_what_was_not_timed_has_no_cost(run: Run) -> None:
    point = sent(run, {"list-page": captured(*[AUTHOR] * 3)})
    assert point
    assert point.sentences == ("One statement is sent 3 times in one operation.",)
    assert [note.text for note in point.lines] == [SHORT]


def test_the_costliest_are_named_and_the_others_counted(run: Run) -> None:
    texts = [text for text in "abcd" for _again in range(3)]
    places = [
        ((at, at + 1, at + 2), us) for at, us in zip((1, 4, 7, 10), (10.0, 40.0, 30.0, 20.0), strict=True)
    ]
    point = sent(run, {"list-page": captured(*texts)}, timed("psycopg", "tcp", *places))
    assert point
    assert [text.split(": ")[1].split(" of ")[0] for text in point.sentences] == ["120", "90"]
    *texts, about = (note.text for note in point.lines)
    assert texts == ["b", "c"]
    assert about.endswith(" 2 more statements are repeated.")


def test_of_several_workloads_each_has_its_name() -> None:
    run = factories.make_results(factories.make_run())
    captures = {"one-by-one": captured(*["a"] * 4), "prefetched": captured("a", "b")}
    point = sent(run, captures, timed("libpq", "tcp", ((1, 2, 3, 4), 50.0), name="one-by-one"))
    assert point
    assert point.sentences == ("one-by-one: One statement is sent 4 times in one operation: 200 µs.",)
    assert [note.text for note in point.lines] == ["a", "Timed alone through libpq (C)."]


def test_the_times_are_those_of_one_client() -> None:
    run = factories.make_results(factories.make_run(), clients=(1, 8), routes=("tcp",))
    times = timed("libpq", "tcp", ((1, 2, 3), 10.0), name="site-by-domain")
    point = sent(run, {"site-by-domain": captured(*["a"] * 3)}, times)
    assert point
    assert point.sentences[0].startswith("1 client: One statement is sent 3 times in one operation: 30 of ")


def test_a_part_is_never_set_against_a_shorter_whole(run: Run) -> None:
    point = sent(run, {"list-page": captured(*["a"] * 3)}, timed("libpq", "tcp", ((1, 2, 3), 9_000.0)))
    assert point
    assert point.sentences == ("One statement is sent 3 times in one operation: 27.0 ms.",)
