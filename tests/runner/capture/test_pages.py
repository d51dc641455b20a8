"""Pages captured from the wire: the example site's list page, and pages that cannot be replayed or
run, in clients with settings of their own.
"""

from dataclasses import replace
from typing import Any

import pytest

from pgperf.core.exceptions import ClientFailed, InvalidDefinition
from pgperf.core.records import Definition, Page, WorkloadDefinition
from pgperf.runner.capture import statements as module
from pgperf.runner.capture.statements import CaptureSettings
from pgperf.runner.plan import make_plan

#: Only so that the tests' own database is made; the books in it are the module's.
pytestmark = pytest.mark.django_db
SITE_SETTINGS = "tests.page_settings"
LAYERS = ("libpq", "psycopg2", "psycopg", "django_cursor", "django_orm", "django_view")


def captured(path: str, site: CaptureSettings, **page: Any) -> module.Capture:
    work = WorkloadDefinition("page", "", page=Page(path, **page))
    return module.captured(Definition("test", (work,), LAYERS, ("tcp",)), work, site, ())


def left(found: module.Capture) -> list[str]:
    """The layers that a plan with this capture measures."""
    definition = Definition("test", (found.workload,), LAYERS, ("tcp",))
    plan = make_plan(definition, found.skipped())
    return [variant.layer for variant in plan.variants if not variant.control]


def repeated(found: module.Capture) -> None:
    """Every layer below repeats the statements of the page."""
    assert found.refusal == ""
    assert found.differences == ()
    assert [text.partition(" ")[0] for text in found.work.texts] == ["SELECT"] * 4
    assert sum(found.work.rows) > 25
    assert left(found) == ["libpq", "psycopg2", "psycopg", "django_cursor", "django_view"]


def test_every_layer_below_repeats_the_statements_of_a_page_with_their_plans_without_values(
    started_site: CaptureSettings,
) -> None:
    found = captured("/books/?q=Harbour&page=1", started_site)
    repeated(found)
    assert list(found.plans) == list(dict.fromkeys(found.work.texts))
    lines = [line for plan in found.plans.values() for line in plan]
    assert any("Scan" in line for line in lines)
    assert "arbour" not in repr(found.to_json()).lower().replace("the harbour", "")


def test_a_statement_without_a_plan_takes_no_other_s_plan_away(site: CaptureSettings) -> None:
    found = captured("/tests/settings/", site)
    assert found.work.texts == ("SELECT ?", "SHOW work_mem", "SELECT count(*) FROM books_book")
    assert list(found.plans) == [found.work.texts[0], found.work.texts[2]]
    assert "Seq Scan on books_book" in found.plans[found.work.texts[2]][-1]


@pytest.mark.parametrize("path", ["/tests/atomic/", "/tests/two-values/"])
def test_the_reads_of_a_page_that_cannot_be_replayed_have_plans(site: CaptureSettings, path: str) -> None:
    found = captured(path, site)
    assert found.refusal
    (plan,) = found.plans.values()
    assert any("books_book" in line for line in plan)
    assert "4711" not in repr(found)


def test_a_client_that_does_not_start_explains_nothing(
    site: CaptureSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    starts: list[str] = []

    def failing(*_: Any) -> Any:
        starts.append("client")
        raise ClientFailed("no client starts")

    monkeypatch.setattr(module, "_behind_proxy", failing)
    found = module.Capture(
        WorkloadDefinition("page", "", page=Page("/")),
        module.OperationWork(("a", "b"), (1, 1)),
        reads={"a": "A"},
    )
    assert module._plans(Definition("test", (found.workload,), LAYERS, ("tcp",)), found, site) == {}
    assert len(starts) == 1


def test_a_value_of_several_lines_is_masked_as_a_whole() -> None:
    plan = [
        "Seq Scan on book",
        "  Filter: (note = 'Dear Jane",
        "the code is hunter two",
        "bye ''ada''",
        "'::text)",
    ]
    assert module._masked_plan(plan) == ["Seq Scan on book", "  Filter: (note = ?::text)"]


def test_every_layer_below_repeats_the_statements_of_a_head_request(site: CaptureSettings) -> None:
    repeated(captured("/books/?q=the&page=1", site, method="HEAD"))


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/tests/counting/", "other values each time"),
        ("/tests/atomic/", "controls transactions"),
        ("/tests/silent/", "no statement"),
    ],
)
def test_a_page_that_cannot_be_replayed_is_measured_from_the_view_upwards(
    site: CaptureSettings, path: str, reason: str
) -> None:
    found = captured(path, site)
    assert reason in found.refusal
    assert "4711" not in found.refusal
    assert left(found) == ["django_view"]


def test_values_that_change_are_replayed_from_one_request_where_the_user_says_so(
    site: CaptureSettings,
) -> None:
    found = captured("/tests/counting/", site, one_capture=True)
    assert found.refusal == ""
    assert "values change" in found.note
    assert found.to_json()["note"] == found.note
    assert left(found) == ["libpq", "psycopg2", "psycopg", "django_cursor", "django_view"]


def test_other_statements_each_time_are_never_replayed(site: CaptureSettings) -> None:
    found = captured("/tests/growing/", site, one_capture=True)
    assert "did not send the same" in found.refusal
    assert left(found) == ["django_view"]


def refused_in_one_sentence_with_the_remedy(said: str) -> None:
    assert "(page: django_view and all layers below the ORM: page: the server refused its " in said
    assert "open it once, then measure it" in said
    assert [said.count(words) for words in ("refused", "books_book", "read-only")] == [1, 1, 1]
    assert "4711" not in said


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        (
            "/tests/writing/",
            'the server refused its UPDATE of "books_book": pgperf requests pages in read-only',
        ),
        ("/tests/writing-quietly/", 'the server refused its UPDATE of "books_book"'),
        ("/tests/writing-first/", 'the server refused its UPDATE of "books_book"'),
        (
            "/tests/writing-by-function/",
            r"its SELECT \(cannot execute nextval\(\) in a read-only transaction\)",
        ),
        ("/tests/locking/", 'its SELECT FOR UPDATE of "books_book"'),
        ("/tests/elsewhere/", "the alias 'other'"),
        ("/tests/elsewhere-quietly/", "the alias 'other'"),
        ("/tests/mail/", "it sends mail"),
        ("/tests/logging-an-error/", "it sends mail"),
        ("/tests/task/", "it queues a task"),
        ("/tests/redirect/", r"302 \(Found\)"),
        ("/tests/nowhere/", r"404 \(Not Found\)"),
        ("/tests/broken/", "ZeroDivisionError in page_urls.py, line"),  # although it is mailed to ADMINS
        ("/tests/suspicious/", r"400 \(Bad Request\); check ALLOWED_HOSTS"),
        ("/tests/two-lengths/", "its length was"),
    ],
)
def test_a_page_that_does_more_than_read_is_stopped_with_the_reason(
    site: CaptureSettings, path: str, reason: str
) -> None:
    found = captured(path, site)
    assert found.workload.statements == ()
    with pytest.raises(Exception, match=reason) as stopped:
        left(found)
    if path in ("/tests/writing/", "/tests/writing-quietly/", "/tests/locking/"):
        assert isinstance(stopped.value, InvalidDefinition)
        refused_in_one_sentence_with_the_remedy(str(stopped.value))


def test_a_session_of_another_database_is_no_user_s(site: CaptureSettings) -> None:
    work = replace(
        WorkloadDefinition("page", "", page=Page("/books/", user="reader")), cookie="sessionid=absent"
    )
    found = module.captured(Definition("test", (work,), LAYERS, ("tcp",)), work, site, ())
    with pytest.raises(Exception, match="sessions are not in this database"):
        left(found)
