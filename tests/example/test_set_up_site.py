"""`set_up_site`, called once and twice."""

from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth import authenticate, get_user_model

import example.settings
from example.books.benchmarks import create_benchmarks
from example.books.management.commands.set_up_site import create_admin, create_targets
from example.stack import web_steps
from example.stack.postgres import READER, TRUSTED
from pgperf.access import credentials
from pgperf.core import site_start
from pgperf.models import Benchmark, Database, Target
from pgperf.runner import run_time
from pgperf.runner.plan import make_plan
from pgperf.runs.definitions import freeze

pytestmark = pytest.mark.django_db


def test_the_admin_can_log_in_with_the_latest_password() -> None:
    for password in ("first", "second"):
        create_admin("admin", password)
    assert authenticate(username="admin", password="first") is None
    user = authenticate(username="admin", password="second")
    assert user is not None
    assert user.is_superuser
    assert get_user_model().objects.count() == 1


def test_the_demo_has_a_valid_target_for_each_route(stack: dict[str, str]) -> None:
    create_targets(stack)
    database = Database.objects.get(name="demo")
    database.full_clean()
    for target in database.targets.all():
        target.full_clean()
    addresses = {target.route: (target.host, str(target.port)) for target in database.targets.all()}
    assert addresses == {
        "socket": (stack["PGPERF_DB_SOCKET"], stack["PGPERF_DB_PORT"]),
        "tcp": ("127.0.0.1", stack["PGPERF_DB_PORT"]),
        "tcp_trust": ("127.0.0.1", stack["PGPERF_DB_PORT"]),
        "pgbouncer": ("127.0.0.1", stack["PGPERF_PGBOUNCER_PORT"]),
        "pgbouncer_trust": ("127.0.0.1", stack["PGPERF_PGBOUNCER_TRUST_PORT"]),
        "pgbouncer_tls": ("127.0.0.1", stack["PGPERF_PGBOUNCER_PORT"]),
        "pgbouncer_transaction": ("127.0.0.1", stack["PGPERF_PGBOUNCER_TRANSACTION_PORT"]),
        "distance_05ms": ("127.0.0.1", stack["PGPERF_DISTANCE_05MS_PORT"]),
        "distance_45ms": ("127.0.0.1", stack["PGPERF_DISTANCE_45MS_PORT"]),
    }


STEP_URLS = {
    web_steps.variable(name): web_steps.url(name, 9000 + at) for at, name in enumerate(web_steps.STEPS)
}


@pytest.fixture
def allowed_urls(settings: Any) -> None:
    settings.PGPERF = {**settings.PGPERF, "WEB_URLS": list(STEP_URLS.values())}


@pytest.mark.usefixtures("allowed_urls")
def test_each_web_step_has_a_valid_target_that_builds_on_another(stack: dict[str, str]) -> None:
    database = create_targets({**stack, **STEP_URLS})
    for target in database.targets.all():
        target.full_clean()
    steps = {target.route: target for target in database.targets.exclude(url="")}
    assert list(steps) == list(web_steps.STEPS)
    assert {name: target.builds_on for name, target in steps.items()} == {
        name: step.builds_on for name, step in web_steps.STEPS.items()
    }


@pytest.mark.usefixtures("allowed_urls")
def test_steps_that_the_stack_does_not_serve_are_disabled(stack: dict[str, str]) -> None:
    create_targets({**stack, **STEP_URLS})
    one = web_steps.variable("web_nginx")
    database = create_targets({**stack, one: STEP_URLS[one]})
    enabled = database.targets.filter(enabled=True).exclude(url="")
    assert [(target.route, target.builds_on) for target in enabled] == [("web_nginx", "")]


@pytest.mark.usefixtures("allowed_urls")
def test_the_benchmark_of_the_steps_can_be_frozen(stack: dict[str, str]) -> None:
    database = create_targets({**stack, **STEP_URLS})
    create_benchmarks(database)
    frozen = freeze(Benchmark.objects.get(name="site-steps"), database)
    assert set(frozen.web_routes) == set(frozen.routes)
    assert frozen.web_routes["web_tls+45ms"] == "web_pgbouncer+45ms"
    assert [route for route, base in frozen.web_routes.items() if not base] == [
        "web_apache",
        "web_apache+45ms",
    ]


@pytest.mark.usefixtures("allowed_urls")
def test_the_benchmark_of_the_steps_fits_into_its_budget(
    stack: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twice, because pages take longer than predicted; and a step is measured beside its base."""
    monkeypatch.setattr(site_start, "seconds", lambda: 1.5)  # not that of a process of tests
    database = create_targets({**stack, **STEP_URLS})
    create_benchmarks(database)
    plan = make_plan(freeze(Benchmark.objects.get(name="site-steps"), database))
    assert plan.definition.restart_s > 0
    assert 2 * run_time.least_s(plan) < plan.definition.budget_s <= example.settings.PGPERF["MAX_RUN_SECONDS"]
    together = [{variant.route for variant in cohort.variants} for cohort in plan.cohorts]
    assert len(together) == 2
    for step, base in plan.definition.web_routes.items():
        assert not base or any({step, base} <= routes for routes in together)


def test_every_route_of_the_demo_resolves(stack: dict[str, str]) -> None:
    database = create_targets(stack)
    routes = credentials.resolve(database, [target.route for target in database.targets.all()])
    others = {"pgbouncer_transaction": READER, "tcp_trust": TRUSTED, "pgbouncer_trust": TRUSTED}
    assert {name: route.user for name, route in routes.items()} == {
        **dict.fromkeys(routes, stack["PGPERF_DB_USER"]), **others,
    }  # fmt: skip
    assert Path(routes["pgbouncer_tls"].sslrootcert).exists()


def test_changed_ports_are_updated(stack: dict[str, str]) -> None:
    create_targets(stack)
    create_targets({**stack, "PGPERF_DB_PORT": "5999"})
    assert Target.objects.get(route="tcp").port == 5999
    assert Target.objects.count() == 9
