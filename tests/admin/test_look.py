"""What to expect, before the click: the pages that start a run show a worker's look at its machine."""

import re
import uuid
from collections.abc import Callable
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from pgperf.core.exceptions import BrokerUnreachable
from pgperf.models import Benchmark, Database, MachineLook, Run, Worker
from pgperf.runs import broker, machine_looks, state
from pgperf.runs.definitions import freeze
from tests import factories
from tests.machine_looks import look

WORKER = "pgperf@localhost"
LABEL = "django_orm · socket"
BUTTON_IS_OFF = 'name="look" value="1" class="quiet" formnovalidate disabled'


@pytest.fixture(autouse=True)
def sent(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    calls: list[int] = []
    monkeypatch.setattr(broker, "send_look", lambda row_id, queue: calls.append(row_id))
    return calls


@pytest.fixture
def database(db: None) -> Database:
    return factories.make_database()


@pytest.fixture
def page(db: None, database: Database) -> str:
    benchmark: Benchmark = factories.make_benchmark(precision=2.0)
    factories.make_worker(WORKER)
    return reverse("admin:pgperf_benchmark_run", args=[benchmark.pk])


def field_value(text: str, name: str) -> str:
    """The value of the page's text field of that name."""
    [field] = re.findall(f'<input[^>]* name="{name}"[^>]*>', text)
    found = re.search(' value="([^"]*)"', field)
    return found[1] if found else ""


def seen(**changed: object) -> None:
    row = MachineLook.objects.create(
        queue="pgperf", asked_at=machine_looks.Now(), host=state.this_machine(), worker=WORKER
    )
    machine_looks.answer(row.pk, look(**changed))  # type: ignore[arg-type]


def test_without_a_look_the_page_offers_one(admin_page: Client, page: str, sent: list[int]) -> None:
    text = admin_page.get(page).content.decode()
    assert 'name="look"' in text
    assert "A worker can check its machine" in text
    assert "data-waiting" not in text
    assert BUTTON_IS_OFF not in text
    assert sent == []


def test_a_click_asks_a_worker_once_and_starts_no_run(
    admin_page: Client, page: str, database: Database, sent: list[int]
) -> None:
    form = {"database": database.pk, "length": "quick", "token": uuid.uuid4().hex, "look": "1"}
    for _ in range(2):
        text = admin_page.post(page, form).content.decode()
        assert f'data-waiting="{page}?database={database.pk}&amp;length=quick"' in text
    assert len(sent) == 1
    assert not Run.objects.exists()


def test_a_click_keeps_what_was_typed(admin_page: Client, page: str) -> None:
    """A production database's name, and a time budget that is not allowed, without a complaint yet."""
    factories.make_database("other")
    live = factories.make_database("shop-live", production=True)
    form = {"database": live.pk, "length": "quick", "budget_s": "7", "confirm_name": "shop-li", "look": "1"}
    answer = admin_page.post(page, form)
    text = answer.content.decode()
    assert {name: field_value(text, name) for name in ("budget_s", "confirm_name")} == {
        "budget_s": "7",
        "confirm_name": "shop-li",
    }
    assert f'<option value="{live.pk}" selected' in text
    assert answer.context["form"]["length"].value() == "quick"
    assert "errornote" not in text
    assert field_value(text, "token")


def test_the_confirm_page_keeps_the_name(admin_page: Client) -> None:
    factories.make_worker(WORKER)
    live = factories.make_database("shop-live", production=True)
    frozen = freeze(factories.make_benchmark(), live)
    run = factories.make_results(factories.make_run(database=live, definition=frozen.to_json()))
    run.variants.filter(label=LABEL).update(verdict=factories.stored_verdict())
    confirm = reverse("admin:pgperf_run_confirm", args=[run.pk])
    form = {"variant": LABEL, "confirm_name": "shop-li", "token": uuid.uuid4().hex, "look": "1"}
    text = admin_page.post(confirm, form).content.decode()
    assert field_value(text, "confirm_name") == "shop-li"
    assert "errornote" not in text
    assert Run.objects.count() == 1


def test_an_address_cannot_confirm_a_production_database(admin_page: Client, page: str) -> None:
    live = factories.make_database("shop-live", production=True)
    address = f"{page}?database={live.pk}&confirm_name=shop-live"
    assert field_value(admin_page.get(address).content.decode(), "confirm_name") == ""


def test_the_answer_has_the_moment_the_precision_and_its_age(admin_page: Client, page: str) -> None:
    seen(others={0: 0.0, 1: 0.4}, steal=0.09)
    MachineLook.objects.update(taken_at=timezone.now() - timedelta(seconds=150))
    text = admin_page.get(page).content.decode()
    for expected in (
        "Now is a bad moment: other programs use 40 % of CPU 1; the hypervisor takes 9 %",
        "<li>Quick: about ±",
        "<li>Full: about ±",
        "Seen 2\xa0minutes ago",
        f"({WORKER})",
    ):
        assert expected in text


def asked(seconds_ago: float = 0, **fields: object) -> None:
    """A request of a page."""
    at = timezone.now() - timedelta(seconds=seconds_ago)
    MachineLook.objects.create(queue="pgperf", asked_at=at, **fields)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, "data-waiting="),
        ({"seconds_ago": 40, "host": "h"}, "data-waiting="),
        ({"seconds_ago": 40}, "No worker took the request within 20 s."),
        (
            {"seconds_ago": 90, "host": "h", "worker": "w@h"},
            "The worker w@h began the check and gave no answer.",
        ),
        ({"taken_at": timezone.now(), "refusal": "no <look> now"}, "No &lt;look&gt; now"),
        ({"seconds_ago": 1000}, "A worker can check its machine"),
        (
            {"seconds_ago": 1000, "taken_at": timezone.now(), "refusal": "no"},
            "A worker can check its machine",
        ),
    ],
    ids=["sent", "taken", "not taken", "no answer", "refused", "old", "old refusal"],
)
def test_the_page_says_what_became_of_the_request(
    admin_page: Client, page: str, fields: dict[str, Any], expected: str
) -> None:
    asked(**fields)
    text = admin_page.get(page).content.decode()
    assert expected in text
    others = ("data-waiting=", "No worker took", "gave no answer", "No &lt;look", "A worker can check")
    assert [other for other in others if other in text] == [each for each in others if each in expected]
    assert (BUTTON_IS_OFF in text) == (expected == "data-waiting=")


def test_a_failed_look_leaves_the_answer_before_it(admin_page: Client, page: str) -> None:
    seen()
    asked(taken_at=timezone.now(), refusal="a run measures now")
    text = admin_page.get(page).content.decode()
    assert "A run measures now" in text
    assert "The machine is quiet" in text
    seen()
    assert "A run measures now" not in admin_page.get(page).content.decode()


def test_an_old_answer_says_nothing_of_now(admin_page: Client, page: str) -> None:
    seen()
    MachineLook.objects.update(asked_at=timezone.now() - timedelta(seconds=machine_looks.VALID_S + 1))
    text = admin_page.get(page).content.decode()
    assert "The machine is quiet" not in text
    assert "A worker can check its machine" in text


def test_without_a_worker_there_is_no_look_to_ask_for(admin_page: Client, page: str) -> None:
    seen()
    Worker.objects.all().delete()
    text = admin_page.get(page).content.decode()
    assert "No worker is online that could check" in text
    assert "gave no answer" not in text
    assert "The machine is quiet" not in text
    assert BUTTON_IS_OFF in text


def test_a_run_that_compares_nothing_has_no_prediction_and_the_page_says_so(
    admin_page: Client, page: str
) -> None:
    Benchmark.objects.update(blocks=1, precision=0)
    seen()
    assert "cannot be predicted" in admin_page.get(page).content.decode()


@pytest.mark.parametrize("method", ["get", "post"])
def test_the_confirm_page_too_however_it_was_reached(
    admin_page: Client, database: Database, method: str
) -> None:
    """The button on a run's page posts to the confirm page, whose address then has no variant."""
    factories.make_worker(WORKER)
    frozen = freeze(factories.make_benchmark(), database)
    run = factories.make_results(factories.make_run(database=database, definition=frozen.to_json()))
    run.variants.filter(label=LABEL).update(verdict=factories.stored_verdict())
    confirm = reverse("admin:pgperf_run_confirm", args=[run.pk])
    asked()
    text = getattr(admin_page, method)(confirm, {"variant": LABEL}).content.decode()
    found = re.search('data-waiting="([^"]*)"', text)
    assert found
    seen()
    MachineLook.objects.filter(taken_at=None).delete()
    text = admin_page.get(unescape(found[1])).content.decode()
    assert "The machine is quiet" in text
    assert "<li>The test run: about ±" in text


def test_a_broker_that_is_away_is_said(
    admin_page: Client, page: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(row_id: int, queue: str) -> None:
        raise BrokerUnreachable("Celery's broker does not answer")

    monkeypatch.setattr(broker, "send_look", away)
    text = admin_page.post(page, {"look": "1"}, follow=True).content.decode()
    assert "broker does not answer" in text.replace("&#x27;", "'")


class TestBusy:
    """The page says which run a new one waits for, and no look is asked for that nobody can take."""

    def test_of_the_only_worker(
        self, admin_page: Client, client_of: Callable[[str], Client], page: str, sent: list[int]
    ) -> None:
        other = factories.make_database("other")
        run = factories.make_run(Run.Status.RUNNING, database=other, worker=WORKER, restricted=True)
        text = admin_page.get(page).content.decode()
        assert f"A run that you start now waits until {run} has ended." in text
        assert f"waits until run {run.pk} has ended." in client_of("runner").get(page).content.decode()
        text = admin_page.post(page, {"look": "1"}).content.decode()
        assert f"No worker is free to check its machine: wait until {run} has ended" in text
        assert "data-waiting" not in text
        assert sent == []

    def test_of_one_worker_beside_a_free_one(
        self, admin_page: Client, page: str, database: Database, sent: list[int]
    ) -> None:
        factories.make_worker("free@localhost")
        run = factories.make_run(Run.Status.RUNNING, database=factories.make_database("other"), worker=WORKER)
        assert "waits until" not in admin_page.get(page).content.decode()
        Run.objects.filter(pk=run.pk).update(busy_key=str(database.pk), database=database)
        assert f"waits until {run} has ended." in admin_page.get(page).content.decode()
        admin_page.post(page, {"look": "1"})
        assert len(sent) == 1

    def test_of_two_workers(self, admin_page: Client, page: str) -> None:
        runs = []
        for at in range(2):
            worker = factories.make_worker(f"pgperf{at}@localhost").hostname
            Worker.objects.filter(hostname=WORKER).delete()
            on = factories.make_database(f"other-{at}")
            runs.append(factories.make_run(Run.Status.RUNNING, database=on, worker=worker))
        assert f"waits until {runs[0]} or {runs[1]} has ended." in admin_page.get(page).content.decode()


def test_only_who_may_start_runs_may_ask(
    client_of: Callable[[str], Client], page: str, sent: list[int]
) -> None:
    assert client_of("viewer").post(page, {"look": "1"}).status_code == 403
    assert sent == []
