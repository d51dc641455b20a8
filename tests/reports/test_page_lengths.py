"""What a run's page says where web servers answered with another page."""

import pytest

from pgperf.models import Run
from pgperf.reports import page_lengths
from pgperf.reports.answer import points
from pgperf.reports.run_page import result
from pgperf.reports.run_rows import RunRows
from tests import site_steps

pytestmark = pytest.mark.django_db
QUESTION = "Response check"


@pytest.fixture
def run() -> Run:
    return site_steps.with_requests(site_steps.make_run())


def rows(run: Run) -> RunRows:
    return RunRows(run, list(run.variants.order_by("position")), [])


def with_view(run: Run, answer: str) -> Run:
    run.environment = {**run.environment, "layers": {"django_view": {"answer": answer}}}
    run.save()
    return run


def test_steps_of_about_one_length_need_no_caution(run: Run) -> None:
    assert page_lengths.cautions(rows(run)) == []
    assert page_lengths.cautions(rows(with_view(run, "200, 6,100 bytes"))) == []
    assert QUESTION not in [point.question for point in points(rows(run))]


def test_a_step_that_answers_with_another_page_is_named_beside_the_first(run: Run) -> None:
    row = run.variants.get(route="web_tls")
    row.http |= {"least_bytes": 310, "most_bytes": 312}
    row.save()
    (caution,) = page_lengths.cautions(rows(run))
    assert "web_tls" in caution
    assert "the body has 310 to 312 bytes, and 6,000 to 6,144 in " in caution
    assert "web_apache" in caution
    assert "login form" in caution


def test_the_answer_and_the_requests_say_it_where_the_view_is_longer(run: Run) -> None:
    found = result(with_view(run, "200, 91,000 bytes"))
    parts = {section.name: section.part for section in found.sections}
    (point,) = (point for point in parts["answer"]["points"] if point.question == QUESTION)
    assert (point.mark, point.anchor) == ("poor", "requests")
    assert [note.text for note in point.lines] == parts["requests"]["cautions"]
    assert len(point.lines) == len(site_steps.STEPS)
    assert "91,000 in ORM, view and template" in point.lines[0].text


def test_each_of_several_pages_is_compared_with_its_own_view(run: Run) -> None:
    works = [{"name": name, "sql": "", "page": {"path": f"/{name}/"}} for name in ("books", "authors")]
    run.definition = {**run.definition, "workloads": works}
    assert page_lengths.cautions(rows(with_view(run, "200, 91,000 bytes"))) == []  # of which, is not known
    answers = {"answer of books": "200, 91,000 bytes", "answer of authors": "200, 6,100 bytes"}
    run.environment = {**run.environment, "layers": {"django_view": answers}}
    found = page_lengths.cautions(rows(run))
    assert len(found) == len(site_steps.STEPS)
    assert all("91,000 in " in caution for caution in found)


def test_head_has_no_body_to_compare(run: Run) -> None:
    work = {"name": "books", "sql": "", "page": {"path": "/books/", "method": "HEAD"}}
    run.definition = {**run.definition, "workloads": [work]}
    assert page_lengths.cautions(rows(with_view(run, "200, 91,000 bytes"))) == []
