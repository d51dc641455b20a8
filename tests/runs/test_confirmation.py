"""The run that tests a verdict: its definition, and its effect on the verdict."""

import math
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest

from pgperf.access.guardrails import is_catalog
from pgperf.analysis import verdict_kinds
from pgperf.analysis.variant_summary import VariantSummary
from pgperf.analysis.verdict import Verdict, VerdictNumbers
from pgperf.catalog.light import LIGHT
from pgperf.catalog.orm_overhead import ORM_OVERHEAD
from pgperf.core.delayed_routes import apart
from pgperf.core.exceptions import InvalidDefinition
from pgperf.core.records import (
    BLOCKS,
    BUDGET,
    ENDING,
    BulkInsert,
    Definition,
    Ending,
    Page,
    Variant,
    WorkloadDefinition,
)
from pgperf.models import Database, Run, Target, VariantResult
from pgperf.reports.confirmation import preview
from pgperf.reports.number_format import seconds
from pgperf.runner import run_time
from pgperf.runner.plan import make_plan
from pgperf.runs import confirmation as module
from pgperf.runs import confirmation_definition, state
from pgperf.runs.definitions import freeze
from pgperf.worker import execution
from tests.analysis.rows import row as measured
from tests.analysis.rows import summary
from tests.factories import make_benchmark, make_database, make_run
from tests.runner.builders import definition as fake

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("one_heartbeat")]
QUEUE_US = {"client": 0.0, "pooler": 0.0, "server": 0.0}
NUMBERS = VerdictNumbers(response_us=211.0, parts_us={"client": 165.0}, queue_us=QUEUE_US)


@pytest.fixture
def database() -> Database:
    return make_database()


def result(
    database: Database, word: str = "client_cpu", intervention: str = "lower_layer", **more: Any
) -> VariantResult:
    """A variant of a run that ended, with that verdict."""
    frozen = freeze(make_benchmark(), database)
    run = make_run(database=database, definition=frozen.to_json(), definition_hash=frozen.digest())
    verdict = Verdict(word, "likely", numbers=NUMBERS, intervention=intervention)
    return add(run, **{"verdict": verdict.to_json(), **more})


def add(run: Run, **more: Any) -> VariantResult:
    """A variant measured in that run: the ORM's over TCP with one client, unless it is said
    otherwise.
    """
    numbers = measured(**{name: more.pop(name) for name in ("us", "client", "server") if name in more})
    values: dict[str, Any] = {
        "layer": "django_orm", "route": "tcp", "mode": "simple", "clients": 1, "connect": "persistent",
        "workload": "site-by-domain", "placement": "apart", **more,
    }  # fmt: skip
    known = {
        name: numbers[name]
        for name in ("us_per_op", "ops_per_s", "cpu_us_per_op", "cpu_account", "diagnostics")
    }
    label = f"{values['layer']} · {values['route']} · {values['clients']}"
    return VariantResult.objects.create(run=run, position=0, **{"label": label, **known, **values})


CHANGES: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("lower_layer", {}, {"layers": ("libpq", "django_orm")}),
    ("bypass_pooler", {"route": "pgbouncer"}, {"routes": ("tcp", "pgbouncer")}),
    ("bypass_pooler", {"route": "pgbouncer+5ms"}, {"routes": ("tcp+5ms", "pgbouncer+5ms")}),
    ("light_statement", {}, {"workloads": (ORM_OVERHEAD.workloads[0], LIGHT)}),
    ("one_client", {"clients": 4}, {"clients": (1, 4)}),
    ("double_clients", {"clients": 4}, {"clients": (4, 8)}),
    ("processes", {"workers": 8}, {"workers": 8, "as_processes": True}),
    ("lower_layer", {"workers": 8}, {"workers": 8, "layers": ("libpq", "django_orm")}),
    ("add_distance", {"clients": 4, "us": 5186.0}, {"routes": ("tcp", "tcp+2.5ms")}),
]


@pytest.mark.parametrize(("intervention", "more", "expected"), CHANGES)
def test_the_run_measures_the_variant_and_the_changed_variant(
    database: Database, intervention: str, more: dict[str, Any], expected: dict[str, Any]
) -> None:
    row = result(database, intervention=intervention, **more)
    asked = module.definition(row)
    own = {
        "layers": ("django_orm",), "routes": (row.route,), "clients": (row.clients,), "modes": ("simple",),
        "workloads": ORM_OVERHEAD.workloads, "workers": row.workers, "as_processes": False,
    }  # fmt: skip
    assert {name: getattr(asked, name) for name in own} == own | expected
    assert (asked.blocks, asked.cold_blocks) == (6, 0)
    assert asked.diagnostic_ms > 0
    cohorts = make_plan(asked).cohorts
    assert len(cohorts) == 1
    assert len([variant for variant in cohorts[0].variants if not variant.control]) == 2


def test_a_verdict_is_tested_without_a_search() -> None:
    asked = fake(rate_search_ms=10.0)
    variant = VariantSummary(workload="spin", layer="fake", route="here", mode="simple", connect="persistent")
    plan = make_plan(confirmation_definition.paired(asked, variant, "double_clients", lambda: "here", 8))
    assert not any(each.is_search for each in plan.variants)
    assert {each.clients for each in plan.variants} == {1, 2}


PAIRS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    (
        "double_clients",
        {"connect": "per_operation", "clients": 2},
        {"connect": "per_operation", "clients": 4},
    ),
    ("lower_layer", {"connect": "per_operation"}, {"layer": "libpq", "connect": "per_operation"}),
    ("lower_layer", {"connect": "pool"}, {"layer": "libpq", "connect": "persistent"}),
    ("lower_layer", {"environment": "next"}, {"layer": "libpq", "environment": "default"}),
    (
        "bypass_pooler",
        {"connect": "per_operation", "route": "pgbouncer"},
        {"connect": "per_operation", "route": "tcp"},
    ),
]


@pytest.mark.parametrize(("intervention", "own", "other"), PAIRS)
def test_a_variant_is_paired_with_the_changed_one(
    database: Database, intervention: str, own: dict[str, Any], other: dict[str, Any]
) -> None:
    """Whatever connection modes and environments stood beside it in the tested run."""
    modes, both = ("persistent", "per_operation", "pool"), ("default", "next")
    asked = replace(freeze(make_benchmark(), database), connection_modes=modes, environments=both)
    base = {"workload": "site-by-domain", "layer": "django_orm", "route": "tcp", "mode": "simple"}
    variant = VariantSummary(**{"connect": "persistent", **base, **own})
    plan = make_plan(confirmation_definition.paired(asked, variant, intervention, lambda: "tcp", 8))
    rows = [summary_of(each) for each in plan.variants]
    again, changed = confirmation_definition.told_apart(rows, variant)
    assert again.layer == "django_orm"
    assert changed
    assert {name: getattr(changed, name) for name in other} == other


def summary_of(variant: Variant) -> VariantSummary:
    names = ("workload", "layer", "mode", "route", "clients", "connect", "control", "workers", "environment")
    return VariantSummary(**{name: getattr(variant, name) for name in names})


@pytest.mark.parametrize("environment", ["default", "next"])
def test_a_layer_that_lacks_the_tested_operation_is_named_before_a_run(environment: str) -> None:
    """Of the layers, libpq alone has no batch of simple statements."""
    bulk = BulkInsert("rows", "batch", "pgperf.rows", ("number",), ("int4",), (1,), 100)
    asked = fake(workloads=(WorkloadDefinition("insert", "", bulk=bulk),))
    variant = VariantSummary(
        label="the tested one", workload="insert", layer="psycopg", route="tcp", mode="simple",
        connect="persistent", environment=environment,
    )  # fmt: skip
    with pytest.raises(InvalidDefinition, match=r"the tested one needs .*libpq sends a batch as a pipeline"):
        confirmation_definition.paired(asked, variant, "lower_layer", lambda: "tcp", 8)
    prepared = replace(variant, mode="prepared")
    found = confirmation_definition.paired(asked, prepared, "lower_layer", lambda: "tcp", 8)
    assert {each.layer for each in make_plan(found).variants} == {"libpq", "psycopg"}


@pytest.mark.parametrize("connect", ["persistent", "per_operation"])
def test_a_page_is_measured_beside_its_view_in_process(connect: str) -> None:
    page = WorkloadDefinition("page", "", page=Page("/books/"))
    asked = fake(workloads=(page,), layers=("http",), routes=("web",), web_routes={"web": ""})
    variant = VariantSummary(
        workload="page", layer="http", route="web", mode="simple", clients=2, connect=connect
    )
    plan = make_plan(confirmation_definition.paired(asked, variant, "in_process", lambda: "tcp", 8))
    measured_there = {
        (each.layer, each.route, each.connect, each.clients)
        for cohort in plan.cohorts
        for each in cohort.variants
        if not each.control
    }
    by_http = {("http", "web", mode, 2) for mode in (connect, "persistent")}
    assert measured_there == by_http | {("django_view", "tcp", "persistent", 2)}
    own, changed = confirmation_definition.told_apart(
        [
            replace(variant, layer=layer, route=route, connect=mode)
            for layer, route, mode, _ in sorted(measured_there, reverse=True)
        ],
        variant,
    )
    assert own == variant
    assert changed
    assert changed.layer == "django_view"


def test_a_web_route_is_not_the_direct_route(database: Database) -> None:
    Target.objects.create(database=database, route="front", url="http://127.0.0.1:8000")
    row = result(database, intervention="bypass_pooler", route="pgbouncer")
    assert module.definition(row).routes == ("tcp", "pgbouncer")


def test_a_unix_socket_is_tested_by_load_not_by_delay(database: Database) -> None:
    row = result(database, "latency", "add_distance", clients=4, us=5186.0, route="socket")
    asked = module.definition(row)
    assert (asked.routes, asked.clients) == (("socket",), (4, 8))
    assert preview(row).test == "twice as many clients"
    assert module.request(row, foreground=True).intervention == "double_clients"


def test_the_longest_route_name_can_be_extended(database: Database) -> None:
    name = "a" * 30
    Target.objects.filter(route="tcp").update(route=name)
    row = result(database, "latency", "add_distance", clients=4, us=5186.0, route=name)
    far = module.definition(row).routes[1]
    assert far == f"{name}+2.5ms"
    assert add(row.run, route=far, label="far") == VariantResult.objects.get(route=far)


def busy_workers(database: Database, workers: int = 1, more: int = 2, far: str = "") -> VariantResult:
    """A page of a run with two steps, the second of which has more processes."""
    for name, base in (("front", ""), ("wide", "front"), ("other", "front")):
        Target.objects.create(database=database, route=name, url="http://127.0.0.1:8000", builds_on=base)
    routes = {f"front{far}": "", f"wide{far}": f"front{far}", f"other{far}": f"front{far}"}
    work = replace(ORM_OVERHEAD.workloads[0], sql="", page=Page("/"))
    asked = replace(freeze(make_benchmark(), database), workloads=(work,), layers=("http",))
    asked = replace(asked, routes=tuple(routes), web_routes=routes)
    run = make_run(database=database, definition=asked.to_json(), definition_hash=asked.digest())
    verdict = Verdict("web_workers", "likely", numbers=NUMBERS, intervention="double_clients").to_json()
    own, *_ = (
        add(run, verdict=verdict, layer="http", route=route, clients=4, workload=work.name)
        for route in routes
    )
    for row, count in zip(run.variants.order_by("pk"), (workers, more, workers), strict=True):
        row.cpu_account = {**row.cpu_account, "web_workers": count}
        row.save()
    return run.variants.get(pk=own.pk)


@pytest.mark.parametrize("far", ["", "+45ms"])
def test_busy_web_workers_are_tested_by_the_step_that_has_more(database: Database, far: str) -> None:
    row = busy_workers(database, far=far)
    asked = module.definition(row)
    assert (asked.routes, asked.clients) == ((f"wide{far}", f"front{far}"), (4,))
    assert preview(row).test == "a step whose web server has more processes"


def test_without_such_a_step_busy_web_workers_get_more_clients(database: Database) -> None:
    row = busy_workers(database, workers=3, more=4)
    asked = module.definition(row)
    assert (asked.routes, asked.clients) == (("front",), (4, 8))
    assert preview(row).test == "twice as many clients"


def test_a_step_that_is_no_longer_enabled_is_not_measured(database: Database) -> None:
    row = busy_workers(database)
    Target.objects.filter(route="wide").update(enabled=False)
    assert module.intervention(row) == "double_clients"


SLOW_US = 170_000.0


def test_a_slow_operation_prolongs_the_promise(database: Database) -> None:
    """Six blocks of three rounds: of each variant, and of the control, a slice of five seconds."""
    fast, slow = (preview(result(database, us=us)).needs[-1].takes for us in (211.0, SLOW_US))
    assert fast == "at most 48 s"
    asked = module.definition(result(database, us=SLOW_US))
    variants = len(make_plan(asked).variants)
    assert 6 * 3 * variants * 5 < asked.budget_s < 1.5 * 6 * 3 * variants * 5
    assert slow == f"at most {seconds(asked.budget_s)}"


@pytest.mark.parametrize(
    ("intervention", "more", "times"), [("double_clients", {}, 2.0), ("bypass_pooler", {}, 1.0)]
)
def test_twice_the_clients_may_wait_twice_as_long(
    database: Database, intervention: str, more: dict[str, Any], times: float
) -> None:
    row = result(database, intervention=intervention, route="pgbouncer", us=SLOW_US, **more)
    assert module.definition(row).workloads[0].op_s == pytest.approx(times * SLOW_US / 1e6)


@pytest.mark.parametrize(("rate", "times"), [(None, 2.0), (5.0, 1.0)])
def test_at_a_fixed_rate_twice_the_clients_do_not_wait_longer(rate: float | None, times: float) -> None:
    asked = fake(clients=(4, 8))
    name = asked.workloads[0].name
    variant = summary(measured(SLOW_US, clients=4, workload=name, rate=rate))
    slow = confirmation_definition._as_slow(asked, variant, "double_clients")
    assert slow.work(name).op_s == pytest.approx(times * SLOW_US / 1e6)


def test_an_added_distance_is_in_the_predicted_time(database: Database) -> None:
    row = result(database, intervention="add_distance", clients=4, us=SLOW_US)
    asked = module.definition(row)
    added_ms = apart(asked.routes[1])[1]
    assert added_ms > 10
    assert asked.workloads[0].op_s == pytest.approx(SLOW_US / 1e6 + added_ms / 1000)


def test_a_test_in_time_has_its_six_blocks_and_no_more(database: Database) -> None:
    asked = module.definition(result(database, us=SLOW_US))
    assert (asked.most_blocks, asked.diagnosed_block, asked.is_fixed) == (6, 5, False)
    stored = Definition.from_json(asked.to_json())
    assert (stored.budget_s, stored.most_blocks) == (asked.budget_s, 6)
    assert "op_s" not in asked.to_json()["workloads"][0]


def test_a_test_without_a_known_time_has_all_blocks_and_rounds(database: Database) -> None:
    row = result(database)
    VariantResult.objects.update(us_per_op=None)
    asked = module.definition(VariantResult.objects.get(pk=row.pk))
    assert (asked.is_fixed, asked.budget_s, asked.blocks, asked.rounds) == (True, 0, 6, 3)


def test_a_test_that_cannot_fit_is_refused_with_the_least_time(database: Database, settings: Any) -> None:
    row = result(database, us=SLOW_US)
    least_s = math.ceil(run_time.least_s(make_plan(module.definition(row))))
    settings.PGPERF = {**settings.PGPERF, "MAX_RUN_SECONDS": least_s + 1}
    assert module.definition(row).budget_s == least_s + 1
    settings.PGPERF = {**settings.PGPERF, "MAX_RUN_SECONDS": least_s - 1}
    with pytest.raises(
        InvalidDefinition, match=rf"time: the test takes at least {least_s} s .* takes 170 ms"
    ):
        module.definition(row)
    assert "takes at least" in preview(row).refusal


@pytest.mark.parametrize(
    ("intervention", "us", "refused"),
    [
        ("double_clients", 5_600_000.0, True),
        ("double_clients", 3_900_000.0, False),
        ("in_process", 8_500_000.0, False),  # the requests stay as they are, and those ended
    ],
)
def test_a_test_whose_requests_would_meet_their_deadline_is_refused(
    intervention: str, us: float, refused: bool
) -> None:
    """A page of 0.7 s behind one web worker: 8 clients wait for 5.6 s, and 16 for 11.2 s."""
    page = WorkloadDefinition("page", "", page=Page("/books/"))
    asked = fake(workloads=(page,), layers=("http",), routes=("web",), web_routes={"web": ""})
    variant = VariantSummary(
        label="http · web", workload="page", layer="http", route="web", mode="simple", clients=8,
        connect="persistent", us_per_op=us,
    )  # fmt: skip
    made = confirmation_definition.paired(asked, variant, intervention, lambda: "tcp", 16)
    words = r"http · web takes 5.60 s, and .* about 11.2 s; .* longer than 10 s fails.* fewer clients"
    with pytest.raises(InvalidDefinition, match=words) if refused else nullcontext():
        confirmation_definition.in_time(made, variant, intervention, 36_000)


def test_a_test_with_too_few_blocks_decides_nothing(database: Database) -> None:
    """Without its last block it has no diagnostic slices, and the verdict may read otherwise."""
    run = confirmation(result(database), 60.0, "server_cpu")
    ending = Ending(reason=BUDGET, blocks=4, seconds=70.0, budget_s=75.0, precision=None, target=None)
    run.environment = {ENDING: ending.to_json()}
    _, verdict = module.tested(run) or pytest.fail("nothing was tested")
    found = verdict.confirmation
    assert found
    assert (verdict.certainty, found.outcome, found.numbers) == ("likely", "undecided", None)
    assert "only 4 blocks fitted" in verdict_kinds.confirmation_evidence(verdict)
    alone = replace(verdict, confirmation=replace(found, blocks=1))
    assert "only 1 block fitted" in verdict_kinds.confirmation_evidence(alone)
    assert Verdict.from_json(verdict.to_json()) == verdict
    run.environment = {ENDING: replace(ending, reason=BLOCKS, blocks=6).to_json()}
    _, verdict = module.tested(run) or pytest.fail("nothing was tested")
    assert verdict.certainty == "withdrawn"


def test_a_refusal_names_the_obstacle(database: Database, settings: Any) -> None:
    settings.PGPERF = {**settings.PGPERF, "MAX_CLIENTS": 7}
    with pytest.raises(InvalidDefinition, match="clients: 8 is more than 7"):
        module.definition(result(database, intervention="double_clients", clients=4))
    row = result(database, intervention="bypass_pooler", route="pgbouncer")
    far = result(database, intervention="bypass_pooler", route="pgbouncer+5ms")
    database.targets.filter(route="tcp").delete()
    with pytest.raises(InvalidDefinition, match="routes: socket is a Unix socket, which has no delay"):
        module.definition(far)
    database.targets.filter(pooler="").delete()
    with pytest.raises(InvalidDefinition, match="no enabled target without a pooler"):
        module.definition(row)
    row.run.database.delete()
    with pytest.raises(InvalidDefinition, match="database: demo was deleted"):
        module.definition(VariantResult.objects.get(pk=row.pk))


def test_only_testable_verdicts_are_offered(database: Database) -> None:
    row = result(database)
    add(row.run, layer="libpq", verdict=Verdict("disturbed").to_json())
    done = {**row.verdict, "certainty": "confirmed"}
    add(row.run, layer="psycopg", verdict=done)
    add(row.run, layer="psycopg2", control=1, verdict=row.verdict)
    assert module.open_verdicts(row.run) == [row]
    assert module.find(row.run, row.label) == row
    with pytest.raises(InvalidDefinition, match=r"variant: .* has no 'nobody'; it has django_orm"):
        module.find(row.run, "nobody")
    with pytest.raises(InvalidDefinition, match=r"the verdict on libpq · tcp · 1 \(disturbed\)"):
        module.find(row.run, "libpq · tcp · 1")


def test_the_light_statement_is_pgperf_s_own() -> None:
    assert is_catalog(LIGHT)


def test_the_run_names_the_tested_verdict(database: Database) -> None:
    row = result(database)
    run = module.request(row, foreground=True, token="a" * 32)
    assert (run.confirms, run.confirms_variant, run.intervention) == (row.run, row.label, "lower_layer")
    assert (run.status, run.database, run.benchmark, run.queue) == ("queued", database, row.run.benchmark, "")
    assert run.definition["layers"] == ["libpq", "django_orm"]
    assert module.request(row, token="a" * 32) == run
    assert Run.objects.filter(confirms=row.run).count() == 1


def test_a_database_in_production_asks_for_its_name(database: Database) -> None:
    row = result(database)
    Database.objects.update(production=True)
    row = VariantResult.objects.get(pk=row.pk)
    with pytest.raises(InvalidDefinition, match="type its name to confirm"):
        module.request(row, foreground=True)
    assert module.request(row, foreground=True, confirmed="demo").confirmed_name == "demo"


def test_the_test_is_hidden_without_permission_for_the_tested_run(database: Database) -> None:
    row = result(database)
    Run.objects.update(restricted=True)
    assert module.request(VariantResult.objects.get(pk=row.pk), foreground=True).restricted


def confirmation(row: VariantResult, changed_us: float, again: str = "client_cpu") -> Run:
    """A test of the row by libpq: the ORM again, and libpq in that time."""
    run = module.request(row, foreground=True)
    own = add(run, us=210.0, client=160.0)
    own.verdict = replace(verdict_kinds.judge(summary(measured(210.0, client=160.0))), word=again).to_json()
    own.save()
    add(run, us=changed_us, client=10.0, layer="libpq")
    return run


def test_a_confirmed_verdict_names_the_confirming_run(database: Database) -> None:
    row = result(database)
    run = confirmation(row, 60.0)
    tested, verdict = module.tested(run) or pytest.fail("nothing was tested")
    assert tested == row
    assert (verdict.word, verdict.certainty) == ("client_cpu", "confirmed")
    assert verdict_kinds.evidence(verdict) == "client CPU: 165 of 211 µs"
    found = verdict.confirmation
    assert found
    assert (found.run, found.intervention, found.outcome) == (run.pk, "lower_layer", "confirmed")
    assert "60 instead of 210 µs" in verdict_kinds.confirmation_evidence(verdict)


def test_a_verdict_is_tested_by_rows_that_a_replica_may_lack(database: Database, settings: Any) -> None:
    row = result(database)
    run = Run.objects.get(pk=confirmation(row, 60.0).pk)
    settings.DATABASE_ROUTERS = ["tests.lost_replica.Router"]
    tested, verdict = module.tested(run) or pytest.fail("nothing was tested")
    assert (tested, verdict.certainty) == (row, "confirmed")


@pytest.mark.parametrize(
    ("changed_us", "again", "certainty", "outcome"),
    [
        (205.0, "client_cpu", "withdrawn", "withdrawn"),
        (60.0, "server_cpu", "withdrawn", "withdrawn"),
        (60.0, "disturbed", "likely", "undecided"),
    ],
)
def test_a_failed_test_withdraws_and_a_disturbed_one_stays_likely(
    database: Database, changed_us: float, again: str, certainty: str, outcome: str
) -> None:
    _, verdict = module.tested(confirmation(result(database), changed_us, again)) or pytest.fail("no test")
    assert verdict.confirmation
    assert (verdict.certainty, verdict.confirmation.outcome) == (certainty, outcome)


def test_ordinary_runs_and_deleted_verdicts_change_nothing(database: Database) -> None:
    row = result(database)
    assert module.tested(row.run) is None
    run = module.request(row, foreground=True)
    row.delete()
    assert module.tested(run) is None
    row.run.delete()
    run.refresh_from_db()
    assert module.tested(run) is None


def test_the_end_of_a_run_decides_the_tested_verdict(database: Database) -> None:
    Target.objects.filter(route="tcp").update(route="here")
    row = result(database, layer="fake", route="here", workload="spin")
    asked = state.request_confirmation(
        row.run, row.label, "double_clients", fake(blocks=1, rounds=1, clients=(1, 2)), foreground=True
    )
    run = execution.perform(asked.pk, "w@h")
    assert run.status == Run.Status.DONE, run.error
    row.refresh_from_db()
    found = row.verdict["confirmation"]
    assert found["run"] == run.pk
    assert row.verdict["certainty"] == {"undecided": "likely"}.get(found["outcome"], found["outcome"])


def test_a_delayed_route_is_no_target_name() -> None:
    assert apart("tcp+2.5ms") == ("tcp", 2.5)
    assert not Target.objects.filter(route__contains="+").exists()
