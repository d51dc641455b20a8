"""`pgperf export`: each form it has, and a reader that goes away."""

import csv
import io
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import connection

from pgperf.analysis.verdict import Capacity
from pgperf.analysis.verdict_kinds import evidence
from pgperf.cli.export import TABLES
from pgperf.core.records import ENDING, Ending
from pgperf.models import Run
from pgperf.reports.cpu_accounting import spent_table
from pgperf.reports.number_format import interval, number
from pgperf.reports.run_rows import read
from pgperf.reports.scaling import scaling_table
from tests.catalog_runs import make_catalog_run
from tests.cpu_accounts import add_cpu_accounts, checks
from tests.factories import make_blocks, make_database, make_results, make_run, stored_verdict

CHECKOUT = Path(__file__).resolve().parent.parent.parent


def export(*words: object) -> str:
    out = io.StringIO()
    call_command("pgperf", "export", *map(str, words), stdout=out)
    return out.getvalue()


@pytest.fixture
def run(db: None) -> Run:
    return make_blocks(make_results(make_run()))


def test_raw_slices(run: Run) -> None:
    found = list(csv.DictReader(io.StringIO(export(run.pk, "--raw"))))
    assert len(found) == 2 * 5 * 3
    assert found[0]["label"] == "libpq · socket"


@pytest.mark.parametrize("name", ["variants", "comparisons", "scaling", "timeline", "top"])
def test_each_table(db: None, name: str) -> None:
    run = add_cpu_accounts(make_blocks(make_results(make_run(), clients=(1, 8))))
    assert list(csv.DictReader(io.StringIO(export(run.pk, "--table", name))))
    assert export(run.pk, "--table", "comparisons") == export(run.pk, "--comparisons")


@pytest.mark.parametrize("name", TABLES)
def test_a_table_that_a_run_lacks_has_a_head(run: Run, name: str) -> None:
    assert csv.DictReader(io.StringIO(export(run.pk, "--table", name))).fieldnames


def test_the_means_of_a_suite(db: None) -> None:
    means = csv.DictReader(io.StringIO(export(make_catalog_run("driver-suite").pk, "--table", "means")))
    assert "psycopg2" in {row["layer"] for row in means}


def test_markdown_is_a_table_of_each_part(run: Run) -> None:
    text = export(run.pk, "--format", "md")
    assert text.startswith(f"### orm-overhead #{run.pk} on demo: done\n")
    for title in (
        "Ladder over socket",
        "Ladder over pgbouncer",
        "One layer against another",
        "Controls",
        "Environment",
    ):
        assert f"**{title}" in text
    orm = run.summary["ladders"][0]["steps"][-1]
    time, ends = number(orm["us"]), interval(orm["low"], orm["high"])
    assert f"| Django ORM | {time} | {ends} |" in text
    assert "pgperf 0.1.0 · Python 3.11.2" in text


def test_markdown_says_how_the_run_ended(run: Run) -> None:
    assert "The ratios are known to" not in export(run.pk, "--format", "md")
    ending = Ending(reason="precision", blocks=8, seconds=58.2, budget_s=90.0, precision=0.0161, target=0.02)
    run.environment = {**run.environment, ENDING: ending.to_json()}
    run.save()
    headline, _rest = export(run.pk, "--format", "md").split("; definition ")
    assert "\n\nThe ratios are known to ±1.6 % after 58 s.\n\n" in headline


def test_markdown_says_what_bounds_it_and_where_the_time_is_spent(db: None) -> None:
    run = add_cpu_accounts(
        make_results(make_run(), routes=("socket",), layers=("libpq", "django_orm"), clients=(1, 8))
    )
    text = export(run.pk, "--format", "md")
    orm = run.variants.get(label="django_orm · socket")
    verdict = orm.record.verdict
    assert verdict
    assert "| Django ORM · socket | client CPU, likely" in text
    assert f"| {evidence(verdict).removeprefix('client CPU: ')}" in text
    shared = read(run)
    for table in (spent_table(shared.originals), scaling_table(shared.scaling).shown()):
        printed = text.partition(f"**{table.caption}**\n\n")[2].splitlines()
        assert printed[0] == f"| {' | '.join(table.heads)} |"
        assert printed[2 : 2 + len(table.rows)] == [
            f"| {' | '.join(cell.text for cell in row)} |" for row in table.rows
        ]
    assert "control 1" not in text.partition("**Controls")[0]


def test_markdown_has_what_connecting_costs_and_the_notes_of_layers(db: None) -> None:
    text = export(make_catalog_run("connection-cost").pk, "--format", "md")
    assert "**Connect, operate and close**" in text
    assert "| pgbench -j 1 · tcp · 20 clients · per operation | close | " in text
    rates = text.partition("**Throughput with and without connecting**")[2].split("\n\n")[1].splitlines()
    one_thread = next(line for line in rates if line.startswith("| pgbench -j 1 · pgbouncer "))
    assert one_thread.endswith("| 1,013 | 2,766 |")
    for told in (
        "Throughput excluding connection time is",
        "Published figures: Cybertec",
        "one thread makes all connections",
    ):
        assert text.count(told) == 1


def test_markdown_says_what_the_figures_do_not_tell(run: Run) -> None:
    row = add_cpu_accounts(run).variants.get(label="libpq · tcp")
    row.verdict = stored_verdict(capacity=Capacity(True, "host", 0.93))
    row.save()
    told = (
        "This run does not show how much the server could do: the CPUs of the clients' machine were 93 % busy"
    )
    assert export(run.pk, "--format", "md").count(f"\n\n{told} (libpq (C) · tcp)\n\n") == 1


def test_markdown_names_the_laws_that_do_not_hold(run: Run) -> None:
    row = add_cpu_accounts(run).variants.get(label="libpq · tcp")
    row.verdict = stored_verdict(checks=checks(row, holds=False))
    row.save()
    text = export(run.pk, "--format", "md")
    assert "libpq (C) · tcp: Little's law: " in text
    assert "libpq (C) · tcp: utilisation law, server: " in text


def test_every_row_of_a_table_has_its_columns(run: Run) -> None:
    run.variants.filter(label="libpq · tcp").update(route="a | b")
    run.variants.filter(label="libpq · socket").update(route="[x](javascript:alert)")
    lines = export(run.pk, "--format", "md").splitlines()
    tables = [line for line in lines if line.startswith("|")]
    for line in tables:
        assert line.replace("\\|", "").count("|") in (8, 10)
    assert not any("](" in line.replace("]\\(", "") for line in lines)


@pytest.mark.parametrize("words", [("--raw", "--format", "json"), ("--comparisons", "--format", "md")])
def test_one_form_at_a_time(run: Run, words: tuple[str, ...]) -> None:
    with pytest.raises(CommandError, match="not allowed with"):
        export(run.pk, *words)


@pytest.mark.django_db(transaction=True)
def test_a_reader_that_has_seen_enough() -> None:
    """`manage.py pgperf export 1 --raw | head -1`, of more than a pipe holds."""
    run = make_blocks(make_run(), blocks=8, rounds=40)
    shell = f"{sys.executable} manage.py pgperf export {run.pk} --raw | head -1; echo ${{PIPESTATUS[0]}}"
    name = str(connection.settings_dict["NAME"])
    env = {**os.environ, "PGPERF_DB_NAME": name, "DJANGO_SETTINGS_MODULE": "tests.settings"}
    done = subprocess.run(
        ["bash", "-c", shell], cwd=CHECKOUT, env=env, capture_output=True, text=True, timeout=60, check=False
    )
    head, code = done.stdout.splitlines()
    assert head.startswith("run_id,benchmark,")
    assert (code, done.stderr) == ("0", "")


class TestOpenMetrics:
    @pytest.fixture
    def hidden(self, run: Run) -> Run:
        """A run on another database, which only superusers may see."""
        database = make_database("secret", restricted=True)
        return make_results(make_run(database=database, restricted=True))

    def test_of_a_run_of_a_benchmark_and_of_all(self, run: Run) -> None:
        shown = export(run.pk, "--format", "openmetrics")
        assert "pgperf_operation_seconds{" in shown
        assert shown.endswith("# EOF\n")
        assert export("orm-overhead", "--format", "openmetrics") == shown
        assert export("--format", "openmetrics") == shown

    def test_all_are_those_that_no_group_hides(self, hidden: Run) -> None:
        User.objects.create_superuser("boss")
        User.objects.create_user("eve")
        for words, seen in (((), False), (("--user", "eve"), False), (("--user", "boss"), True)):
            shown = export("--format", "openmetrics", *words)
            assert ('database="secret"' in shown) == seen
            assert 'database="demo"' in shown

    def test_a_named_run_is_shown_as_in_the_other_formats_but_not_to_a_user_who_may_not_see_it(
        self, hidden: Run
    ) -> None:
        User.objects.create_user("eve")
        assert 'database="secret"' in export(hidden.pk, "--format", "openmetrics")
        with pytest.raises(CommandError, match=f"There is no run {hidden.pk}"):
            export(hidden.pk, "--format", "openmetrics", "--user", "eve")
        assert "secret" not in export("orm-overhead", "--format", "openmetrics", "--user", "eve")

    @pytest.mark.parametrize("active", [True, False])
    def test_a_user_who_is_gone(self, run: Run, active: bool) -> None:
        User.objects.create_user("eve" if active else "ada", is_active=False)
        with pytest.raises(CommandError, match="no active user 'ada'"):
            export("--format", "openmetrics", "--user", "ada")


def test_the_newest_done_run_of_a_benchmark(run: Run) -> None:
    newest = make_results(make_run())
    make_run(Run.Status.FAILED)
    assert export("orm-overhead", "--format", "json") == export(newest.pk, "--format", "json")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ((), "Give the number of a run or the name of a benchmark"),
        (("no-such",), "no done run of a benchmark 'no-such'"),
        (("9" * 40,), "no done run of a benchmark"),
        (("987654",), "There is no run 987654"),
        (("1", "--user", "ada"), "--user goes with --format openmetrics"),
        (("no-such", "--format", "openmetrics"), "no done run of a benchmark 'no-such'"),
    ],
)
def test_what_is_not_there(words: tuple[str, ...], why: str, db: None) -> None:
    with pytest.raises(CommandError, match=why):
        export(*words)


def test_a_site_without_template_directories_of_apps(run: Run, settings: Any) -> None:
    settings.TEMPLATES = []
    with pytest.raises(CommandError, match=r"TEMPLATES: no engine finds pgperf/report/run\.html\. Add one"):
        call_command("pgperf", "export", str(run.pk), "--format", "html", stdout=io.StringIO())
