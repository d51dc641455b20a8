"""The dashboard's figures, as one user sees them."""

import re
from dataclasses import asdict
from datetime import timedelta
from itertools import chain
from typing import Any
from urllib.parse import urlencode

import django
import pytest
from django.contrib.auth.models import User
from django.template.defaultfilters import filesizeformat
from django.utils import timezone

import pgperf
from pgperf import schedules
from pgperf.analysis.grade import Disturbance, Grade
from pgperf.analysis.verdict import Lead
from pgperf.models import Benchmark, ChangePoint, Database, Pause, Run, Schedule, VariantResult, Worker
from pgperf.reports.dashboard import Dashboard, Viewer, attention, read
from pgperf.reports.dashboard.databases import DatabaseCard
from pgperf.reports.dashboard.series import MOST
from pgperf.reports.verdicts import verdict_of
from pgperf.runs import changes, retention
from pgperf.runs.change_text import day
from tests import factories
from tests.catalog_runs import make_catalog_run
from tests.cpu_accounts import add_cpu_accounts
from tests.histories import make_slower

pytestmark = pytest.mark.django_db

MODELS = (Benchmark, Database, Run, Schedule, Worker, Pause)
SEES = {"view": True, "add": True}


def shown(user: Any = None, *hidden: type) -> Dashboard:
    user = user or User.objects.get_or_create(username="boss", is_superuser=True)[0]
    return read(Viewer(user, {model: SEES for model in MODELS if model not in hidden}))


def measured(us: float | None = None, **fields: Any) -> Run:
    """A done run; `us` is the time of the ORM over the first route."""
    run = add_cpu_accounts(factories.make_results(factories.make_run(**fields)))
    if us is not None:
        run.variants.filter(layer="django_orm", route="socket", control=0).update(us_per_op=us)
    return run


def subjects(board: Dashboard) -> list[str]:
    return [concern.subject for concern in board.concerns]


def test_a_database_has_the_verdict_and_the_parts_of_its_last_run() -> None:
    measured()
    last = measured()
    card = shown().databases[0]
    assert card.headline is not None
    assert card.verdict is not None
    assert (card.headline.run, card.headline.title) == (last, "Django ORM · socket")
    assert card.verdict.word
    assert card.bar[0].title == "client"
    assert sum(float(part.segment.width) for part in card.bar) == pytest.approx(100, abs=0.1)
    assert "client" in card.bar_text
    assert "locks in the server 7 %" in card.bar_text


@pytest.mark.parametrize(("word", "grade"), [("client_cpu", "much disturbed"), ("disturbed", "")])
def test_a_verdict_that_says_disturbed_has_no_grade_beside_it(word: str, grade: str) -> None:
    row = measured().variants.get(layer="django_orm", route="socket", control=0)
    poor = {"word": "poor", "share": 0.4, "disturbances": []}
    row.verdict = {**row.verdict, "word": word, "lead": None, "grade": poor}
    row.save()
    assert shown().databases[0].grade == grade


def test_an_unknown_time_has_no_bar() -> None:
    factories.make_results(factories.make_run())
    card = shown().databases[0]
    assert card.headline is not None
    assert (card.bar, card.verdict) == ((), None)


def test_the_headline_is_of_the_topmost_layer_at_the_most_clients() -> None:
    add_cpu_accounts(factories.make_results(factories.make_run(), clients=(1, 8)))
    headline = shown().benchmarks[0].headline
    assert headline is not None
    assert headline.title == "Django ORM · socket · 8 clients"


def test_a_suite_has_the_mean_of_its_workloads() -> None:
    run = make_catalog_run("driver-suite-published")
    board = shown()
    row = next(row for row in board.benchmarks if row.benchmark.pk == run.benchmark_id)
    assert row.headline is not None
    times = [each.us_per_op for each in row.headline.rows]
    assert len(times) > 2
    assert row.headline.us is not None
    assert min(times) < row.headline.us < max(times)
    assert f"{len(times)} workloads" in row.headline.title
    card = board.databases[0]
    assert sum(card.words.values()) == len(card.verdicts)
    assert card.bar == ()


def test_either_of_two_bottlenecks_counts_together_in_either_order() -> None:
    ends = {"us": 4.0, "low": -2.0, "high": 10.0}
    there = asdict(Lead("client", "server", **ends)), asdict(Lead("server", "client", **ends))
    rows = list(add_cpu_accounts(factories.make_results(factories.make_run())).variants.all())[:4]
    for row, word, lead in zip(
        rows, ("client_cpu", "server_cpu", "server_cpu", "client_cpu"), (*there, there[1], None), strict=True
    ):
        row.verdict = {**row.verdict, "word": word, "lead": lead}
    card = DatabaseCard(Database(name="demo"), verdicts=tuple(filter(None, map(verdict_of, rows))))
    assert list(card.words.values()) == [3, 1]
    assert next(iter(card.words)).count(" or ") == 1


def test_the_line_of_a_benchmark_has_its_runs_of_equal_definition_on_the_database() -> None:
    for us in (200.0, 210.0, 220.0):
        measured(us)
    measured(500.0, database=factories.make_database("other"))
    measured(300.0, definition_hash="0" * 64)
    factories.make_run(Run.Status.FAILED)
    measured(230.0)
    row = shown().benchmarks[0]
    assert row.series.us == (200.0, 210.0, 220.0, 230.0)
    assert row.figure == "230 µs"
    assert row.range == "4 runs, 200 … 230 µs"


def test_beside_a_single_run_of_its_definition_stands_the_longest_series_by_name() -> None:
    for us in (200.0, 210.0, 220.0):
        measured(us)
    for us in (300.0, 310.0):
        measured(us, definition_hash="ab" * 32)
    measured(500.0, definition_hash="0" * 64)
    row = shown().benchmarks[0]
    assert row.figure == "500 µs"
    assert row.series.us == (200.0, 210.0, 220.0)
    named = "longest series (definition 9f2c9f2c on demo, without the last result)"
    assert row.range == f"{named}: 3 runs, 200 … 220 µs"
    measured(510.0, definition_hash="0" * 64)
    row = shown().benchmarks[0]
    assert (row.series.us, row.longest) == ((500.0, 510.0), None)


def test_tests_of_a_verdict_are_not_the_longest_series() -> None:
    for us in (200.0, 210.0):
        measured(us, intervention="double_clients")
    measured(500.0, definition_hash="0" * 64)
    row = shown().benchmarks[0]
    assert (row.series.us, row.longest, row.range) == ((500.0,), None, "")


def test_the_last_change_of_the_line_is_told_with_direction_and_date() -> None:
    levels = [[measured(us + at % 3) for at in range(9)] for us in (200.0, 260.0, 230.0)]
    _first, second, third = levels
    for run in chain(*levels):
        changes.record(run)
    (row,) = [row for row in shown().benchmarks if row.headline]
    last = f"30 µs faster since run {third[0].pk}, {day(third[0])}"
    assert row.range == f"27 runs, 200 … 262 µs, 2 changes, the last: {last}"
    Run.objects.filter(pk__in=[run.pk for run in third]).delete()
    (row,) = [row for row in shown().benchmarks if row.headline]
    last = f"60 µs slower since run {second[0].pk}, {day(second[0])}"
    assert row.range == f"18 runs, 200 … 262 µs, {last}"


def test_a_run_whose_figure_is_unknown_is_no_point() -> None:
    measured(200.0)
    unknown = measured()
    unknown.variants.update(us_per_op=None)
    measured(210.0)
    assert shown().benchmarks[0].series.us == (200.0, 210.0)


def test_the_line_has_the_latest_runs_only() -> None:
    runs = [factories.make_run() for _each in range(MOST + 3)]
    label = factories.make_results(runs[0]).variants.get(layer="django_orm", route="socket", control=0)
    fields = {name: getattr(label, name) for name in ("label", "workload", "layer", "mode", "route", "clients",
                                                      "placement", "connect")}  # fmt: skip
    VariantResult.objects.bulk_create(
        VariantResult(run=run, position=0, us_per_op=float(at), **fields)
        for at, run in enumerate(runs[1:], 1)
    )
    assert shown().benchmarks[0].series.us == tuple(map(float, range(3, MOST + 3)))


def test_what_ran_last_is_first_and_what_never_ran_is_there() -> None:
    Benchmark.objects.all().delete()
    factories.make_benchmark("never-run")
    old, new = factories.make_benchmark("old"), factories.make_benchmark("new")
    factories.make_database("never-measured")
    measured(benchmark=old)
    measured(benchmark=new)
    board = shown()
    assert [row.benchmark.name for row in board.benchmarks] == ["new", "old", "never-run"]
    assert [card.database.name for card in board.databases] == ["demo", "never-measured"]
    assert board.benchmarks[2].headline is None


def test_runs_under_way_come_before_those_that_wait() -> None:
    waiting = factories.make_run(Run.Status.QUEUED, message="Waiting for a worker.")
    running = factories.make_run(Run.Status.RUNNING, progress=0.4)
    found = shown().active
    assert [(each.run, each.is_running) for each in found.runs] == [(running, True), (waiting, False)]
    assert found.more == 0


def test_many_waiting_runs_are_counted() -> None:
    for _each in range(11):
        factories.make_run(Run.Status.QUEUED)
    found = shown().active
    assert (len(found.runs), found.more) == (8, 3)


def test_a_silent_run_is_lost_and_not_under_way() -> None:
    old = timezone.now() - timedelta(days=1)
    run = factories.make_run(Run.Status.RUNNING, heartbeat_at=old)
    board = shown()
    assert board.active.runs == ()
    assert f"{run} on demo was lost" in subjects(board)


@pytest.mark.parametrize(
    ("status", "subject"), [(Run.Status.LOST, "was lost"), (Run.Status.FAILED, "failed")]
)
def test_a_broken_run_needs_attention_until_another_run(status: str, subject: str) -> None:
    factories.make_worker()
    run = factories.make_run(status, error="connection refused\nby the server")
    concern = shown().concerns[0]
    assert concern.subject == f"{run} on demo {subject}"
    assert (concern.text, concern.run) == ("connection refused", run.pk)
    assert concern.remedy
    factories.make_run(Run.Status.QUEUED)
    assert concern.subject in subjects(shown())
    measured()
    assert subjects(shown()) == []


def test_without_a_worker_the_command_that_starts_one_is_there() -> None:
    measured()
    concern = shown().concerns[0]
    assert concern.subject == "No worker is online"
    assert "celery" in concern.command
    factories.make_worker()
    assert subjects(shown()) == []


def test_an_agent_that_is_not_online_needs_attention() -> None:
    factories.make_worker()
    factories.make_database(agent="east")
    measured()
    concern = shown().concerns[0]
    assert concern.subject == "The agent east of demo is not online"
    assert "pgperf-agent-east" in concern.command
    Worker.objects.create(hostname="east@db", queue="pgperf-agent-east", last_seen=timezone.now())
    board = shown()
    assert subjects(board) == []
    assert [(each.worker.hostname, each.is_agent) for each in board.workers] == [
        ("pgperf@localhost", False),
        ("east@db", True),
    ]


def test_a_worker_says_which_layers_it_lacks_and_why() -> None:
    absent = "uvloop is not installed here: run `manage.py pgperf build --drivers`"
    factories.make_worker(
        psycopg_async_uvloop=absent,
        psycopg_python="there is no libpq (Debian: apt install libpq5)",
        asyncpg_uvloop=absent,
        fake="it connects to no database",
    )
    (worker,) = shown().workers
    assert sorted(worker.lacking.split("; ")) == [
        "psycopg 3 (Python): there is no libpq",
        "psycopg 3 (async, uvloop), asyncpg (uvloop): uvloop is not installed here",
    ]


def test_other_versions_need_attention() -> None:
    worker = factories.make_worker()
    measured()
    worker.versions = {"pgperf": "0.0.1", "psycopg": "1.0"}
    worker.save()
    concern = shown().concerns[0]
    assert worker.hostname in concern.subject
    assert concern.text == f"pgperf 0.0.1, here {pgperf.__version__}."


def test_other_versions_of_a_load_host_need_attention() -> None:
    """Its clients are of the site's Django, as a worker's are."""
    factories.make_worker()
    measured()
    Worker.objects.create(
        hostname="load@app1",
        queue="pgperf-load-app1",
        versions={"pgperf": pgperf.__version__, "django": "1.0"},
        last_seen=timezone.now(),
    )
    concern = shown().concerns[0]
    assert "load@app1" in concern.subject
    assert concern.text == f"django 1.0, here {django.get_version()}."


def test_a_disturbed_newest_run_needs_attention_until_a_quiet_one() -> None:
    run = measured()
    row = run.variants.get(layer="django_orm", route="socket", control=0)
    programs = [Disturbance("run_queue", "host", 90.0, 0.4, 1.2, ("make", "cc1"))]
    row.verdict = {**row.verdict, "grade": asdict(Grade("poor", 0.4, tuple(programs)))}
    row.save()
    factories.make_worker()
    concern = shown().concerns[0]
    assert concern.subject == f"{run} on demo was much disturbed"
    assert concern.text == (
        "Django ORM · socket: 40 % of the time in the run queue, while other processes kept 1.2 of the"
        " host's CPUs busy: make, cc1 (at most 90 µs)."
    )
    assert (concern.run, bool(concern.remedy)) == (run.pk, True)
    assert [head.caution for line in shown().benchmarks if (head := line.headline)] == ["much disturbed"]
    measured()
    assert concern.subject not in subjects(shown())
    assert [head.caution for line in shown().benchmarks if (head := line.headline)] == [""]


def test_what_is_not_named_is_counted_with_a_link_to_the_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention, "MOST_ROWS", 1)
    factories.make_worker()
    for name in ("one", "two"):
        database = factories.make_database(name)
        make_slower(database=database)
        factories.make_run(Run.Status.FAILED, database=database)
        factories.make_schedule(database=database, outcome="refused", reason="no")
    closing = [each for each in shown().concerns if each.rows]
    assert [(each.subject, each.rows, each.query) for each in closing] == [
        ("And 1 more run failed or was lost", "run", "status__in=failed,lost"),
        ("And 1 more benchmark got slower", "benchmark", ""),
        ("And 1 more schedule started no run", "schedule", "enabled__exact=1&outcome__in=refused,skipped"),
    ]
    more = "And 1 more benchmark got slower"
    assert [each.rows for each in shown(None, Benchmark).concerns if each.subject == more] == [""]
    monkeypatch.setattr(attention, "MOST_ROWS", 2)
    assert not any(each.rows for each in shown().concerns)


def test_what_got_slower_in_the_last_week_needs_attention_and_leads_to_its_history() -> None:
    factories.make_worker()
    runs = make_slower()
    [concern] = shown().concerns
    assert concern.subject == "orm-overhead on demo got slower"
    since = f"12 µs slower since run {runs[18].pk}, {day(runs[18])}"
    assert re.fullmatch(rf"{since}: 92\.\d instead of 80\.\d µs per operation \(×1\.1\d+\)\.", concern.text)
    assert concern.remedy
    assert (concern.history, concern.run) == (runs[0].benchmark_id, None)
    line = {"database": runs[0].database_id, "definition": runs[0].definition_hash}
    assert concern.query == urlencode(line)


def test_each_benchmark_and_database_is_named_the_most_slowed_first() -> None:
    factories.make_worker()
    make_slower()
    make_slower(lambda at: 10.0 if at < 18 else 40.0, database=factories.make_database("other"))
    assert subjects(shown()) == [f"orm-overhead on {name} got slower" for name in ("other", "demo")]


def test_a_change_of_rare_runs_counts_from_the_run_that_showed_it() -> None:
    """The one with which it begins is older than a week then."""
    factories.make_worker()
    runs = make_slower(count=21, every=timedelta(days=7))
    [concern] = shown().concerns
    assert concern.text.startswith(f"12 µs slower since run {runs[18].pk}, ")


@pytest.mark.parametrize(
    "history",
    [
        {"last": timedelta(days=7)},
        {"step_us": lambda at: 22.0 if at < 18 else 10.0},
        {"step_us": lambda at: 10.0 if at < 10 or at >= 18 else 22.0},
        {"intervention": "double_clients"},
    ],
    ids=["longer-ago", "faster", "made-good", "test-of-a-verdict"],
)
def test_no_slower_headline_is_no_concern(history: dict[str, Any]) -> None:
    factories.make_worker()
    make_slower(**history)
    assert ChangePoint.objects.filter(layers__isnull=False).exists()
    assert subjects(shown()) == []


def test_two_changes_of_a_week_are_told_together() -> None:
    factories.make_worker()
    levels = (10.0, 20.0, 30.0)
    runs = make_slower(lambda at: levels[at // 14], count=42, every=timedelta(hours=4))
    assert ChangePoint.objects.filter(layers__isnull=False).count() == 2
    [concern] = shown().concerns
    assert concern.text.startswith(f"20 µs slower since run {runs[14].pk}, ")


def test_a_headline_of_hidden_runs_is_not_told() -> None:
    """Its level before is a median of runs that the user may not see."""
    factories.make_worker()
    runs = make_slower()
    clerk = User.objects.create_user("clerk")
    assert len(subjects(shown(clerk))) == 1
    Run.objects.filter(pk=runs[2].pk).update(restricted=True)
    assert subjects(shown(clerk)) == []
    assert len(subjects(shown())) == 1


def test_a_user_who_sees_no_benchmarks_is_led_to_the_run() -> None:
    factories.make_worker()
    runs = make_slower()
    [concern] = shown(None, Benchmark).concerns
    assert (concern.history, concern.run) == (None, runs[18].pk)
    assert shown(None, Run).concerns == []


def test_a_role_that_can_write_needs_attention() -> None:
    factories.make_worker()
    run = measured()
    run.environment = {**run.environment, "can_write": "app_rw"}
    run.save()
    concern = shown().concerns[0]
    assert concern.subject == "The role app_rw of demo can write"
    assert concern.command == "python manage.py pgperf doctor"
    assert concern.database == run.database_id


def test_blocks_that_are_kept_for_too_long_need_attention(settings: Any) -> None:
    factories.make_worker()
    run = factories.make_blocks(measured())
    assert subjects(shown()) == []
    Run.objects.filter(pk=run.pk).update(finished_at=timezone.now() - timedelta(days=91))
    concern = shown().concerns[0]
    assert "1 run " in concern.subject
    assert "older than the settings allow" in concern.text
    assert concern.command == "python manage.py pgperf prune"
    settings.PGPERF = {**settings.PGPERF, "KEEP_RAW_DAYS": 0}
    assert subjects(shown()) == []


def test_large_raw_blocks_that_nothing_deletes_need_attention(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    factories.make_worker()
    factories.make_blocks(measured())
    size = retention.raw_bytes()
    if size is None:
        pytest.skip("only PostgreSQL tells the size of a table")
    monkeypatch.setattr(attention, "MUCH_BYTES", size)
    assert subjects(shown()) == []
    settings.PGPERF = {**settings.PGPERF, "KEEP_RAW_DAYS": 0}
    (concern,) = shown().concerns
    assert concern.subject == f"Raw blocks take {filesizeformat(size)}, and nothing deletes them"
    assert "KEEP_RAW_DAYS" in concern.remedy
    monkeypatch.setattr(attention, "MUCH_BYTES", size + 2**20)
    assert subjects(shown()) == []
    monkeypatch.setattr(attention, "MUCH_BYTES", size)
    settings.PGPERF = {**settings.PGPERF, "KEEP_RUNS_DAYS": 365}
    assert subjects(shown()) == []


def test_the_first_steps_are_there_until_a_result() -> None:
    Benchmark.objects.all().delete()
    steps = shown().first_steps
    assert steps is not None
    assert (steps.has_route, steps.has_worker, steps.benchmark) == (False, False, None)
    factories.make_database()
    factories.make_worker()
    factories.make_benchmark()
    steps = shown().first_steps
    assert steps is not None
    assert steps.has_route
    assert steps.has_worker
    assert str(steps.benchmark) == "orm-overhead"
    measured()
    assert shown().first_steps is None


def test_a_user_who_sees_no_runs_gets_no_figures() -> None:
    run = measured()
    factories.make_run(Run.Status.RUNNING)
    board = shown(None, Run)
    assert [row.benchmark for row in board.benchmarks if row.headline] == []
    assert [card.headline for card in board.databases] == [None]
    assert (board.active.runs, board.first_steps) == ((), None)
    assert run.benchmark in [row.benchmark for row in board.benchmarks]


def test_a_user_who_sees_runs_only_gets_no_other_part() -> None:
    measured()
    board = shown(User.objects.create_user("clerk"), Benchmark, Database, Worker, Schedule)
    assert (board.benchmarks, board.databases, board.workers) == ([], [], ())
    assert board.sees == {"Run": True, "Pause": True}
    assert not board.viewer.may_start


@pytest.mark.parametrize("outcome", ["refused", "skipped"])
def test_a_schedule_that_started_no_run_needs_attention(outcome: str) -> None:
    factories.make_worker()
    factories.make_run()
    schedule = factories.make_schedule(outcome=outcome, reason="Its owner was deleted.")
    concern = shown().concerns[0]
    assert concern.subject == f"Schedule {schedule.pk}, orm-overhead on demo, started no run"
    assert (concern.text, concern.schedule) == ("Its owner was deleted.", schedule.pk)
    assert concern.remedy
    Schedule.objects.update(enabled=False)
    assert concern.subject not in subjects(shown())


def test_schedules_that_nothing_looks_for_need_attention() -> None:
    factories.make_worker()
    factories.make_run()
    late = timezone.now() - schedules.GRACE - timedelta(minutes=1)
    factories.make_schedule(due_at=late)
    concern = shown().concerns[0]
    assert concern.subject == "Schedules do not start"
    assert concern.command == "python manage.py pgperf due"
    Schedule.objects.update(due_at=timezone.now() - timedelta(minutes=1))
    assert "Schedules do not start" not in subjects(shown())


def test_a_test_of_a_verdict_is_no_result_of_its_benchmark() -> None:
    own = measured(200.0)
    measured(500.0, intervention="double_clients", definition_hash="0" * 64)
    row = shown().benchmarks[0]
    assert row.headline is not None
    assert row.headline.run == own


def test_the_headline_is_of_the_closed_loop_as_on_the_page_of_the_run() -> None:
    run = measured(200.0)
    paced = run.variants.get(layer="django_orm", route="socket", control=0)
    paced.pk, paced.position, paced.rate, paced.label = None, 99, 500.0, f"{paced.label} · 500/s"
    paced.us_per_op = 900.0
    paced.save(force_insert=True)
    headline = shown().benchmarks[0].headline
    assert headline is not None
    assert headline.us == 200.0
