"""The form that adds a benchmark."""

from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.test import Client
from django.urls import reverse

from pgperf.core.layers import DJANGO_DRIVERS, LAYERS, ladder_on
from pgperf.install import launch
from pgperf.models import Benchmark, Database, Target
from tests import factories
from tests.admin.form_data import form_data
from tests.admin.users import staff_client

ADD = "admin:pgperf_benchmark_add"


def offered(client: Client) -> dict[str, Any]:
    return form_data(client.get(reverse(ADD)))


@pytest.mark.parametrize("driver", DJANGO_DRIVERS)
def test_a_new_benchmark_is_the_ladder_on_the_driver_that_django_uses(
    admin_page: Client, monkeypatch: pytest.MonkeyPatch, driver: str
) -> None:
    monkeypatch.setattr(launch, "django_driver", lambda: driver)
    data = offered(admin_page)
    assert data["layers"] == ["libpq", driver, "django_cursor", "django_orm"] == ladder_on(driver)
    assert (data["modes"], data["clients"]) == (["simple"], "1")
    assert [LAYERS[name].rung for name in data["layers"]] == sorted(LAYERS[n].rung for n in data["layers"])


def test_a_name_and_a_workload_are_enough_for_a_new_benchmark(admin_page: Client) -> None:
    factories.make_database()
    (workload,) = factories.make_benchmark().workloads
    data = offered(admin_page) | {"name": "own", "title": "Own", "workloads": [workload.pk]}
    answer = admin_page.post(reverse(ADD), data)
    assert answer.status_code == 302, answer.context["adminform"].form.errors
    assert Benchmark.objects.get(name="own").routes == ["socket"]


def test_the_route_of_a_new_benchmark_is_direct_and_of_a_database_that_the_user_may_see(db: None) -> None:
    hidden = factories.make_database("hidden")
    hidden.groups.set([Group.objects.create(name="others")])
    client = staff_client("alice", "add_benchmark", "view_benchmark")
    assert "routes" not in offered(client) or not offered(client)["routes"]
    seen = Database.objects.create(name="seen", dbname="app", credential="alias:default")
    for route, pooler in (("pooled", "session"), ("near", "")):
        Target.objects.create(database=seen, route=route, host="127.0.0.1", pooler=pooler)
    assert offered(client)["routes"] == "near"
