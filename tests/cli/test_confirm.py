"""`pgperf confirm`: the choice of a verdict, and the printed outcome."""

import io
import json
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from pgperf.analysis import verdict_kinds
from pgperf.analysis.verdict import Verdict, VerdictNumbers
from pgperf.cli import confirm as confirm_command
from pgperf.models import Database, Run, Target, VariantResult
from pgperf.reports.labels import layer_title
from pgperf.runs import confirmation_definition
from pgperf.worker import execution
from tests.factories import make_database, make_run
from tests.runner.builders import definition as fake

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("one_heartbeat")]
NUMBERS = VerdictNumbers(response_us=60.0, parts_us={"latency": 40.0})
VERDICT = Verdict("latency", "likely", numbers=NUMBERS, intervention="double_clients").to_json()


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    """An ended run of the fake layer, which needs no server."""
    database = make_database()
    Target.objects.filter(route="tcp").update(route="here")
    monkeypatch.setattr(confirmation_definition, "BLOCKS", 1)
    monkeypatch.setattr(confirmation_definition, "ROUNDS", 1)
    asked = make_run(
        Run.Status.QUEUED, database=database, busy_key=None, queue="", definition=fake().to_json()
    )
    ended = execution.perform(asked.pk, "w@h")
    ended.variants.filter(control=0).update(verdict=VERDICT)
    return ended


def confirm(run: Run, *more: str) -> tuple[str, str]:
    out, err = io.StringIO(), io.StringIO()
    call_command("pgperf", "confirm", str(run.pk), *more, stdout=out, stderr=err)
    return out.getvalue(), err.getvalue()


def test_tests_the_only_open_verdict_and_prints_its_outcome(run: Run) -> None:
    text, _ = confirm(run)
    asked = Run.objects.get(confirms=run)
    assert asked.status == Run.Status.DONE
    assert f"{layer_title('fake')} · here · 2 clients" in text
    verdict = run.variants.get(control=0).record.verdict
    assert verdict
    assert verdict.confirmation
    outcome = verdict.confirmation.outcome
    title = {"undecided": "inconclusive"}.get(outcome, outcome)
    last = text.strip().splitlines()[-2:]
    said = f"network and wake-up, {verdict.certainty} – 40 of 60 µs"
    assert last[0] == f"fake · here of run {run.pk}: {said}"
    assert last[1] == f"Run {asked.pk}: {title}; {verdict_kinds.confirmation_evidence(verdict)}"
    assert verdict.certainty == {"undecided": "likely"}.get(outcome, outcome)


def test_json_output_is_only_json(run: Run) -> None:
    text, aside = confirm(run, "--json", "--variant", "fake · here")
    printed = json.loads(text)["run"]
    assert printed["status"] == "done"
    assert f"fake · here of run {run.pk}: network and wake-up, " in aside


def test_lists_the_variants_to_choose_from(run: Run) -> None:
    with pytest.raises(CommandError, match="has no 'nobody'; it has fake · here"):
        confirm(run, "--variant", "nobody")
    row = run.variants.get(control=0)
    VariantResult.objects.create(
        **{
            field.attname: getattr(row, field.attname)
            for field in row._meta.concrete_fields
            if field.name != "id"
        }
        | {"label": "another", "position": 9}
    )
    with pytest.raises(
        CommandError, match=r"--variant LABEL:\n  fake · here \(network and wake-up\)\n  another"
    ):
        confirm(run)
    run.variants.update(verdict={})
    with pytest.raises(CommandError, match="no verdict left to test"):
        confirm(run)


def test_a_production_database_requires_its_name(run: Run) -> None:
    Database.objects.update(production=True)
    with pytest.raises(CommandError, match="repeat its name with --database-name demo"):
        confirm(run)


def test_an_unknown_run_gives_an_error(db: Any) -> None:
    with pytest.raises(CommandError, match="no run 4711"):
        call_command("pgperf", "confirm", "4711")


def test_a_run_that_is_deleted_meanwhile(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confirm_command, "carry_out", lambda *_: Run.objects.filter(pk=run.pk).delete())
    with pytest.raises(CommandError, match=f"{run} was deleted meanwhile, and its verdict with it"):
        confirm(run)
