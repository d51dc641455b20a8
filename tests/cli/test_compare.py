"""`pgperf compare`: what it prints, and when it fails."""

import io
import json
import re
from collections.abc import Mapping
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from pgperf.models import Run
from tests.factories import make_results, make_run

pytestmark = pytest.mark.django_db


def ended(slower: Mapping[str, float] | None = None, **fields: Any) -> Run:
    return make_results(make_run(**fields), slower=slower)


def compare(*words: object) -> str:
    out = io.StringIO()
    call_command("pgperf", "compare", *map(str, words), stdout=out)
    return out.getvalue()


def failure(*words: object) -> CommandError:
    with pytest.raises(CommandError) as caught:
        compare(*words)
    return caught.value


def test_the_same_again_fails_nothing() -> None:
    text = compare(ended().pk, ended().pk, "--fail-on", "1%")
    assert "Django ORM · socket" in text
    assert "equivalent" in text
    assert "differs" not in text


def test_a_slower_layer_fails_beyond_the_limit_only() -> None:
    before, after = ended(), ended({"django_orm": 1.1})
    error = failure(before.pk, after.pk, "--fail-on", "5%")
    assert error.returncode == 1
    assert str(error).startswith("Worse by more than 5 %: django_orm · socket ×1.100; ")
    assert "; django_orm · socket over libpq · socket ×1.100" in str(error)
    assert "psycopg ·" not in str(error)
    assert "differs" in compare(before.pk, after.pk, "--fail-on", "15%")
    assert "differs" in compare(before.pk, after.pk)


def test_faster_fails_nothing() -> None:
    text = compare(ended({"django_orm": 1.1}).pk, ended().pk, "--fail-on", "0%")
    assert "differs" in text


def test_a_slower_machine_fails_unless_only_ratios_are_judged() -> None:
    everything = dict.fromkeys(("libpq", "psycopg2", "psycopg", "django_cursor", "django_orm"), 1.2)
    before, after = ended(), ended(everything)
    assert "libpq · socket ×1.200" in str(failure(before.pk, after.pk, "--fail-on", "5%"))
    assert "Time per operation" not in compare(before.pk, after.pk, "--fail-on", "5%", "--relative")


def test_json_has_it_all_and_is_printed_before_it_fails() -> None:
    before, after = ended(), ended({"django_orm": 1.1})
    found = json.loads(compare(before.pk, after.pk, "--json"))
    assert (found["before"]["id"], found["after"]["id"], found["same_definition"]) == (
        before.pk,
        after.pk,
        True,
    )
    assert (found["differences"], found["only_before"], found["worse"], found["fail_on"]) == (
        [],
        [],
        [],
        None,
    )
    orm = next(
        row
        for row in found["comparisons"]
        if row["variant"] == "django_orm · tcp" and row["measure"] == "over_base"
    )
    assert orm["baseline"] == "libpq · tcp"
    assert orm["ratio"] == pytest.approx(1.1)
    assert orm["low"] < 1.1 < orm["high"]
    assert orm["blocks"] == [6, 6]
    out = io.StringIO()
    with pytest.raises(CommandError):
        call_command("pgperf", "compare", str(before.pk), str(after.pk), "--json", "--fail-on=5%", stdout=out)
    failed = json.loads(out.getvalue())
    assert failed["fail_on"] == 0.05
    assert {row["variant"].partition(" · ")[0] for row in failed["worse"]} == {"django_orm"}


def test_what_else_differs_is_said_first() -> None:
    before, after = ended(), ended(definition_hash="1" * 64)
    after.definition["routes"] = ["tcp"]
    after.environment = {**after.environment, "packages": {**after.environment["packages"], "Django": "6.0"}}
    after.save()
    text = compare(before.pk, after.pk)
    lines = [re.split(" {2,}", line) for line in text.splitlines()]
    assert ["routes", "socket, tcp, pgbouncer", "tcp"] in lines
    assert ["packages.Django", "5.2.19", "6.0"] in lines
    assert text.index("Other differences") < text.index("Django ORM")


def test_variants_of_one_run_only() -> None:
    wide, narrow = ended(), make_results(make_run(), routes=("tcp",))
    assert f"Only in {wide}: libpq · socket" in compare(wide.pk, narrow.pk)


@pytest.mark.parametrize("limit", ["5", "x%", "-1%", "%", "0.05", "1e9%", "nan%"])
def test_a_limit_is_a_percentage(limit: str) -> None:
    assert "not a percentage such as 5%" in str(failure(1, 2, f"--fail-on={limit}"))


def test_what_cannot_be_compared() -> None:
    done, under_way, empty = ended(), make_run(Run.Status.RUNNING), make_run(Run.Status.FAILED)
    assert "There is no run 4711" in str(failure(done.pk, 4711))
    assert "has not ended yet" in str(failure(done.pk, under_way.pk))
    assert "no variant was measured in both" in str(failure(done.pk, empty.pk))


def test_times_are_those_of_the_runs_own_results() -> None:
    before, after = ended(), ended({"django_orm": 1.1})
    found = json.loads(compare(before.pk, after.pk, "--json"))["comparisons"]
    own = {row.label: row.us_per_op for row in after.variants.all()}
    times = {each["variant"]: each["after"] for each in found if each["measure"] == "time"}
    assert times
    assert times == {label: own[label] for label in times}
