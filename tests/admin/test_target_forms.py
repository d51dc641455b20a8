"""The targets on the form of their database: each route has one."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from pgperf.models import Database, Target
from pgperf.transfer.columns import MAX_TARGETS
from tests import factories
from tests.admin.form_data import form_data
from tests.db.test_validators import HOSTILE, HOSTS

Change = Callable[[dict[str, Any], Database], None]


def _unknown_to_the_form(data: dict[str, Any], database: Database) -> None:
    """The browser sends the stored targets as new ones."""
    data["targets-INITIAL_FORMS"] = "0"
    for number in range(int(data["targets-TOTAL_FORMS"])):
        del data[f"targets-{number}-id"]


def _added_meanwhile(data: dict[str, Any], database: Database) -> None:
    """Two users add the same route."""
    Target.objects.create(database=database, route="replica", host="localhost")
    data |= {f"targets-{data['targets-TOTAL_FORMS']}-{name}": value for name, value in _NEW.items()}
    data["targets-TOTAL_FORMS"] = int(data["targets-TOTAL_FORMS"]) + 1


def _renamed_to_one_added_meanwhile(data: dict[str, Any], database: Database) -> None:
    Target.objects.create(database=database, route="replica", host="localhost")
    data["targets-0-route"] = "replica"


def _exchanged(data: dict[str, Any], database: Database) -> None:
    one, other = data["targets-0-route"], data["targets-1-route"]
    data |= {"targets-0-route": other, "targets-1-route": one}


_NEW = {"route": "replica", "host": "localhost", "port": "5432", "sslmode": "prefer"}


@pytest.fixture
def database(db: None) -> Database:
    return factories.make_database()


def _send(page: Client, database: Database, change: Change) -> Any:
    address = reverse("admin:pgperf_database_change", args=[database.pk])
    data = form_data(page.get(address))
    change(data, database)
    return page.post(address, data)


@pytest.mark.parametrize(
    "change", [_unknown_to_the_form, _added_meanwhile, _renamed_to_one_added_meanwhile, _exchanged]
)
def test_a_route_of_another_target_is_refused(admin_page: Client, database: Database, change: Change) -> None:
    before = list(database.targets.values_list("pk", "route"))
    answer = _send(admin_page, database, change)
    assert answer.status_code == 200
    assert "Another target has the route" in answer.content.decode()
    assert list(database.targets.exclude(route="replica").values_list("pk", "route")) == before


def test_what_few_targets_need_is_folded_unless_it_has_an_error(
    admin_page: Client, database: Database
) -> None:
    def trust_without_verifying(data: dict[str, Any], database: Database) -> None:
        data |= {"targets-1-sslmode": "prefer", "targets-1-sslrootcert": "/root.crt"}

    page = admin_page.get(reverse("admin:pgperf_database_change", args=[database.pk])).content.decode()
    shown = _send(admin_page, database, trust_without_verifying).content.decode()
    new = 1  # the form that the page copies for each new target
    stored = database.targets.count()
    assert [text.count("<details><summary>") for text in (page, shown)] == [stored + new, stored + new - 1]
    assert "Choose sslmode verify-ca or verify-full" in shown


def test_a_new_target_takes_the_route_of_a_renamed_one_afterwards(
    admin_page: Client, database: Database
) -> None:
    route = database.targets.order_by("pk").values_list("route", flat=True)[0]

    def rename(data: dict[str, Any], database: Database) -> None:
        data["targets-0-route"] = "before"

    def add(data: dict[str, Any], database: Database) -> None:
        new = {**_NEW, "route": route}
        data |= {f"targets-{data['targets-TOTAL_FORMS']}-{name}": value for name, value in new.items()}
        data["targets-TOTAL_FORMS"] = int(data["targets-TOTAL_FORMS"]) + 1

    assert [_send(admin_page, database, step).status_code for step in (rename, add)] == [302, 302]
    assert database.targets.count() == len(factories.ROUTES) + 1


def _as_sent(texts: list[str]) -> list[str]:
    """A form strips spaces, and no browser sends half a character."""
    return [text for text in texts if text and text == text.strip() and text.isprintable() | text.isascii()]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("targets-0-host", host) for host in _as_sent([*HOSTILE, *HOSTS])),
        *(("targets-0-port", port) for port in ("0", "65536", "-1", "5432,1", "1.5")),
        *(("targets-0-sslmode", mode) for mode in ("none", "require options=-cx=y")),
        *((name, text) for name in ("dbname", "user") for text in _as_sent(HOSTILE)),
    ],
    ids=lambda value: ascii(value)[:40],
)
def test_hostile_names_hosts_and_ports_are_refused(
    admin_page: Client, database: Database, field: str, value: str
) -> None:
    def ask(data: dict[str, Any], database: Database) -> None:
        data[field] = value

    before = _stored(database)
    answer = _send(admin_page, database, ask)
    assert answer.status_code == 200, "the form is shown again"
    assert _stored(database) == before


def _stored(database: Database) -> list[Any]:
    fields = ("dbname", "user", "targets__host", "targets__port", "targets__sslmode")
    return list(Database.objects.filter(pk=database.pk).order_by("targets__pk").values_list(*fields))


@pytest.mark.parametrize("total", [MAX_TARGETS + 1, 2_000, 18_497, 10**9])
def test_a_request_for_many_targets_is_refused(admin_page: Client, database: Database, total: int) -> None:
    """Each form takes milliseconds: one request for 2,000 of them took 26 s of CPU time."""

    def ask(data: dict[str, Any], database: Database) -> None:
        data["targets-TOTAL_FORMS"] = total

    answer = _send(admin_page, database, ask)
    assert answer.status_code == 200
    assert f"A database has at most {MAX_TARGETS} targets." in answer.content.decode()
    assert len(answer.context["inline_admin_formsets"][0].formset.forms) == MAX_TARGETS


def test_a_database_with_more_targets_than_a_form_adds_stays_editable(
    admin_page: Client, database: Database
) -> None:
    more = (f"r{number}" for number in range(MAX_TARGETS))
    Target.objects.bulk_create(Target(database=database, route=route, host="localhost") for route in more)

    def rename(data: dict[str, Any], database: Database) -> None:
        data["targets-0-route"] = "before"

    assert _send(admin_page, database, rename).status_code == 302
    assert database.targets.filter(route="before").count() == 1
