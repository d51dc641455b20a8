"""`pgperf compare`: what it prints, and when it fails."""

import errno
import io
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from django.core.management import CommandError, call_command
from django.db import DatabaseError

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
    assert " differs " not in text


def test_a_slower_layer_fails_beyond_the_limit_only() -> None:
    before, after = ended(), ended({"django_orm": 1.1})
    error = failure(before.pk, after.pk, "--fail-on", "5%")
    assert error.returncode == 1
    assert str(error).startswith("Worse by more than 5 %: django_orm · socket ×1.100; ")
    assert "; django_orm · socket over libpq · socket ×1.100" in str(error)
    assert "psycopg ·" not in str(error)
    assert "differs" in compare(before.pk, after.pk, "--fail-on", "15%")
    assert "differs" in compare(before.pk, after.pk)


def test_a_limit_within_the_interval_is_undecided() -> None:
    before, after = ended(), ended({"django_orm": 1.1})
    error = failure(before.pk, after.pk, "--fail-on", "10%")
    assert error.returncode == 3
    assert str(error).startswith("Inconclusive, may be worse by more than 10 %: django_orm · socket ×1.100; ")
    assert "psycopg ·" not in str(error)


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
    assert ["packages · Django", "5.2.19", "6.0"] in lines
    assert text.index("Other differences") < text.index("Django ORM")


def test_a_partial_run_is_named() -> None:
    before, after = ended(), ended()
    after.summary |= {"partial": True}
    after.save()
    assert (
        compare(before.pk, after.pk)
        .split("\n\n")[1]
        .startswith(f"{after} has partial results: it ended early")
    )


def test_variants_of_one_run_only() -> None:
    wide, narrow = ended(), make_results(make_run(), routes=("tcp",))
    only = f"Only in {wide}: route socket (5 variants), route pgbouncer (5 variants)\n"
    assert only in compare(wide.pk, narrow.pk)


def test_what_each_layer_adds_has_its_change() -> None:
    before, after = ended(), ended({"django_orm": 1.1})
    lines = [re.split(" {2,}", line) for line in compare(before.pk, after.pk).splitlines()]
    (step,) = [line for line in lines if line[:2] == ["Django ORM · socket", "Django cursor"]]
    assert step[2:6] == ["differs", "125", "147", "+21"]
    text = compare(before.pk, after.pk, "--relative")
    assert "What each layer adds" not in text


@pytest.mark.parametrize("limit", ["5", "x%", "-1%", "%", "0.05", "1e9%", "nan%"])
def test_a_limit_is_a_percentage(limit: str) -> None:
    assert "not a percentage such as 5%" in str(failure(1, 2, f"--fail-on={limit}"))


def test_what_cannot_be_compared() -> None:
    done, under_way, empty = ended(), make_run(Run.Status.RUNNING), make_run(Run.Status.FAILED)
    assert "There is no run 4711" in str(failure(done.pk, 4711))
    assert "has not ended yet" in str(failure(done.pk, under_way.pk))
    assert str(failure(done.pk, empty.pk)) == f"run {empty.pk} failed and has no results"


def test_times_are_those_of_the_runs_own_results() -> None:
    before, after = ended(), ended({"django_orm": 1.1})
    found = json.loads(compare(before.pk, after.pk, "--json"))["comparisons"]
    own = {row.label: row.us_per_op for row in after.variants.all()}
    times = {each["variant"]: each["after"] for each in found if each["measure"] == "time"}
    assert times
    assert times == pytest.approx({label: own[label] for label in times})


def exported(run: Run, folder: Path) -> Path:
    """The kept JSON export of the run."""
    out = io.StringIO()
    call_command("pgperf", "export", str(run.pk), "--format", "json", stdout=out)
    path = folder / "baseline.json"
    path.write_text(out.getvalue())
    return path


def test_a_file_says_what_its_run_says(tmp_path: Path) -> None:
    before, after = ended(), ended({"django_orm": 1.1})
    path = exported(before, tmp_path)
    from_rows = compare(before.pk, after.pk, "--json")
    before.delete()
    assert json.loads(compare(after.pk, "--baseline", path, "--json")) == json.loads(from_rows)
    assert failure(after.pk, "--baseline", path, "--fail-on", "5%").returncode == 1


def test_last_is_the_latest_earlier_run_that_is_done_with_the_same_definition() -> None:
    ended()
    last = ended()
    ended(definition_hash="1" * 64)
    make_run(Run.Status.FAILED)
    after = ended()
    ended()
    found = json.loads(compare(after.pk, "--baseline", "LAST", "--json"))
    assert (found["before"]["id"], found["after"]["id"]) == (last.pk, after.pk)


def test_last_is_before_the_oldest_in_any_order() -> None:
    last, first, second = ended(), ended(), ended()
    found = json.loads(compare(second.pk, first.pk, "--baseline", "LAST", "--json"))
    assert (found["baseline"], found["runs"]) == (last.pk, [last.pk, first.pk, second.pk])


def test_a_number_is_a_run() -> None:
    before, after = ended(), ended()
    assert compare(after.pk, "--baseline", before.pk) == compare(before.pk, after.pk)


def test_the_baseline_may_be_one_of_eight_runs() -> None:
    runs = [ended().pk for _ in range(8)]
    found = json.loads(compare(*runs, "--baseline", runs[2], "--json"))
    assert (found["baseline"], found["runs"]) == (runs[2], runs)
    alone = failure(runs[0], "--baseline", runs[0])
    assert (alone.returncode, "beside --baseline; 0 given" in str(alone)) == (2, True)


def test_a_baseline_that_is_missing_is_named() -> None:
    run = ended()
    assert f"no run before {run} is done" in str(failure(run.pk, "--baseline", "LAST"))
    assert "no-such-file cannot be read as JSON (FileNotFoundError)" in str(
        failure(run.pk, "--baseline", "no-such-file")
    )
    too_many = range(1, 9)
    assert "one to seven runs beside --baseline; 8 given" in str(failure(*too_many, "--baseline", "LAST"))
    assert "two to eight runs; 1 given" in str(failure(run.pk))
    assert "two to eight runs; 9 given" in str(failure(*too_many, 9))


def spoilt_ladder(data: dict[str, Any], **fields: Any) -> dict[str, Any]:
    first, *others = data["ladders"]
    return data | {"ladders": [{**first, "steps": [{**first["steps"][0], **fields}]}, *others]}


WRONG: list[Callable[[dict[str, Any]], Any]] = [
    lambda data: None,
    lambda data: [data],
    lambda data: {},
    lambda data: data | {"levels": None},
    lambda data: data | {"levels": [{"variant": {"colour": "red"}}]},
    lambda data: data | {"levels": [data["levels"][0] | {"us": 0}]},
    lambda data: data | {"levels": [data["levels"][0] | {"log_us": []}]},
    lambda data: data | {"levels": [data["levels"][0] | {"log_us": [[]]}]},
    lambda data: data | {"levels": [data["levels"][0] | {"log_us": [["x"]]}]},
    lambda data: data | {"levels": [data["levels"][0] | {"log_us": ["12"]}]},
    lambda data: data | {"levels": [data["levels"][0] | {"log_us": None}]},
    lambda data: data | {"levels": [data["levels"][0] | {"log_us": [[1e300]]}]},
    lambda data: data | {"levels": [data["levels"][-1] | {"base_layer": "libpq", "us_over": []}]},
    lambda data: data | {"ladders": None},
    lambda data: data | {"ladders": [{"steps": [], "side": []}]},
    lambda data: spoilt_ladder(data, step_us="x"),
    lambda data: spoilt_ladder(data, step_us=float("nan")),
    lambda data: spoilt_ladder(data, label=None),
    lambda data: spoilt_ladder(data, colour="red"),
    lambda data: data | {"run": data["run"] | {"status": "running away"}},
    lambda data: data | {"run": data["run"] | {"started": 5}},
    lambda data: data | {"run": data["run"] | {"id": float("inf")}},
    lambda data: data | {"levels": [data["levels"][0] | {"us": 10**400}]},
    lambda data: {key: value for key, value in data.items() if key != "levels"},
]


@pytest.mark.parametrize("spoil", WRONG)
def test_a_file_that_is_no_export_is_refused(spoil: Callable[[dict[str, Any]], Any], tmp_path: Path) -> None:
    run = ended()
    path = exported(run, tmp_path)
    path.write_text(json.dumps(spoil(json.loads(path.read_text()))))
    assert "not the JSON export of a run" in str(failure(run.pk, "--baseline", path))


#: What a changed file says, and how the refusal names the field.
FIELDS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "levels[0].log_us has 700, which is not a number from -35 to 35": lambda data: data["levels"][0].update(
        log_us=[[700] * 6]
    ),
    "levels[0].log_us has -36": lambda data: data["levels"][0].update(log_us=[[-36.0] * 6]),
    "levels[0].log_us[0][0] is inf": lambda data: data["levels"][0].update(log_us=[[float("inf")] * 6]),
    "levels[0].log_us[0][0] is nan": lambda data: data["levels"][0].update(log_us=[[float("nan")]]),
    "levels[1].log_over is not a list of at most 2": lambda data: data["levels"][1].update(
        log_over=[[1]] * 3
    ),
    "levels[0].us is 1e+300, which is not a time": lambda data: data["levels"][0].update(us=1e300),
    "levels[0].us is 5e-324, which is not a time": lambda data: data["levels"][0].update(us=5e-324),
    "levels[0].us is an odd text, which is not a time": lambda data: data["levels"][0].update(us="5"),
    "levels[0].us is True, which is not a time": lambda data: data["levels"][0].update(us=True),
    "levels[0].widening is 1e+300": lambda data: data["levels"][0].update(widening=1e300),
    "levels[0].base_layer is a list": lambda data: data["levels"][0].update(base_layer=[]),
    "levels[0].variant.clients is an odd text": lambda data: data["levels"][0]["variant"].update(clients="x"),
    "levels[0].variant.clients is 0": lambda data: data["levels"][0]["variant"].update(clients=0),
    "levels[0].variant.route is an object": lambda data: data["levels"][0]["variant"].update(route={}),
    "levels[0].variant: got an unexpected keyword": lambda data: data["levels"][0]["variant"].update(x=1),
    "levels[0] has no 'us_over'": lambda data: data["levels"][0].pop("us_over"),
    "levels is missing": lambda data: data.pop("levels"),
    "levels is not a list": lambda data: data.update(levels={}),
    "variants[0].verdict is not an object": lambda data: data["variants"][0].update(verdict=[1]),
    "variants[0].verdict.grade.share is not a share from 0 to 1": lambda data: data["variants"][0].update(
        verdict={"grade": {"word": "poor", "share": 2, "disturbances": []}}
    ),
    "run.id is not the number of a run": lambda data: data["run"].update(id=2**63),
    "run.benchmark is None, which is not a name": lambda data: data["run"].update(benchmark=None),
    "run.benchmark is an odd text, which is not a name": lambda data: data["run"].update(benchmark="\x1b[2J"),
    "run.database is an odd text, which is not a name": lambda data: data["run"].update(database="x" * 301),
    "run.benchmark has text that is not Unicode": lambda data: data["run"].update(benchmark="\ud800"),
    "run.quick is neither true nor false": lambda data: data["run"].update(quick=0),
    "run.started is not a time of a run": lambda data: data["run"].update(
        started="0001-01-01T00:00:00+00:00"
    ),
    "run.definition is not an object": lambda data: data["run"].update(definition=[]),
    "run.environment.x" + "[0]" * 14 + "[ is nested too deeply": lambda data: data["run"][
        "environment"
    ].update(x=json.loads("[" * 99 + "]" * 99)),
}


@pytest.mark.parametrize("said", FIELDS)
def test_a_changed_field_is_named(said: str, tmp_path: Path) -> None:
    run = ended()
    path = exported(run, tmp_path)
    data = json.loads(path.read_text())
    FIELDS[said](data)
    path.write_text(json.dumps(data))
    error = failure(run.pk, "--baseline", path)
    assert f"not the JSON export of a run by this version of pgperf ({said}" in str(error)
    assert error.returncode == 1
    assert failure(run.pk, "--baseline", path, "--fail-on", "5%").returncode == 4


@pytest.mark.parametrize("content", [b"\xff{", b"{", b"[" * 100_000, b"1" * 5_000])
def test_a_file_that_cannot_be_read_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "baseline.json"
    path.write_bytes(content)
    assert "cannot be read as JSON" in str(failure(ended().pk, "--baseline", path))


def test_several_runs_are_compared_with_the_oldest_one() -> None:
    oldest, middle, newest = ended(), ended({"django_orm": 1.1}), ended({"django_orm": 0.9})
    found = json.loads(compare(newest.pk, oldest.pk, middle.pk, "--json"))
    assert (found["baseline"], found["runs"]) == (oldest.pk, [oldest.pk, middle.pk, newest.pk])
    pairs = [(each["before"]["id"], each["after"]["id"]) for each in found["comparisons"]]
    assert pairs == [(oldest.pk, middle.pk), (oldest.pk, newest.pk)]
    chosen = json.loads(compare(oldest.pk, middle.pk, newest.pk, "--baseline", middle.pk, "--json"))
    assert (chosen["baseline"], len(chosen["comparisons"])) == (middle.pk, 2)
    error = failure(oldest.pk, middle.pk, newest.pk, "--fail-on", "5%")
    assert error.returncode == 1


def test_a_file_may_have_the_number_of_the_run_itself(tmp_path: Path) -> None:
    """As in a job that begins with an empty database each time."""
    run = ended({"django_orm": 1.1})
    path = exported(ended(), tmp_path)
    data = json.loads(path.read_text())
    data["run"]["id"] = run.pk
    path.write_text(json.dumps(data))
    assert failure(run.pk, "--baseline", path, "--fail-on", "5%").returncode == 1
    assert "### 1 run over" in compare(run.pk, "--baseline", path, "--format", "md")


def test_markdown_and_html_of_a_comparison() -> None:
    runs = [ended().pk, ended({"django_orm": 1.1}).pk, ended().pk]
    Run.objects.filter(pk=runs[2]).update(environment={"python": "3.13.0"})
    text = compare(*runs, "--format", "md")
    assert text.index("is ×1.100 that of the baseline") < text.index("3.13.0")
    assert text.index("2 runs over") < text.index("Time relative to libpq (C)")
    assert "| ×1.100 (" in text
    assert "What each layer adds, and how many µs more than" in text
    html = compare(*runs, "--format", "html")
    assert 'id="comparison-steps"' in html
    assert "default-src 'none'" in html
    assert "<svg" in html
    assert "<script" not in html


def test_relative_needs_times_relative_to_a_layer() -> None:
    """A check must not pass on nothing."""
    before, after = (make_results(make_run(), layers=("libpq",), slower={"libpq": how}) for how in (1, 2))
    assert failure(before.pk, after.pk, "--fail-on", "5%").returncode == 1
    error = failure(before.pk, after.pk, "--fail-on", "5%", "--relative")
    assert error.returncode == 4
    assert f"runs {before.pk} and {after.pk}: no variant was measured beside the same first layer" in str(
        error
    )


def test_a_run_that_cannot_be_compared_is_named_and_undecided() -> None:
    runs = ended(), ended(), make_run(Run.Status.FAILED), make_run(Run.Status.QUEUED)
    _first, _second, empty, queued = runs
    text = compare(*(run.pk for run in runs))
    assert f"Not compared: {empty}: run {empty.pk} failed and has no results" in text
    assert f"Not compared: {queued}: run {queued.pk}: it has not ended yet" in text
    error = failure(*(run.pk for run in runs), "--fail-on", "5%")
    assert error.returncode == 3
    assert str(error).startswith(f"Inconclusive, because not compared: {empty}: ")


def test_a_variant_that_the_later_run_lacks_is_undecided() -> None:
    wide, narrow = ended(), make_results(make_run(), routes=("tcp",))
    error = failure(wide.pk, narrow.pk, "--fail-on", "5%")
    assert error.returncode == 3
    assert str(error).startswith(
        f"Inconclusive, because {narrow} lacks what {wide} measured: route socket (5 variants), "
    )
    compare(narrow.pk, wide.pk, "--fail-on", "5%")


def test_a_variant_relative_to_another_layer_is_undecided_where_only_ratios_are_judged() -> None:
    """As over a route on which one of the runs had to leave libpq out."""
    before, after = ended(), ended({"django_orm": 1.1})
    for level in before.summary["levels"]:
        if level["variant"]["route"] == "tcp" and level["base_layer"]:
            level |= {"base_layer": "", "log_over": [], "us_over": [], "base_us": None}
    before.save()
    error = failure(before.pk, after.pk, "--fail-on", "15%", "--relative")
    assert error.returncode == 3
    assert str(error).startswith(
        f"Inconclusive, because not relative to the same layer in {before} and {after}:"
        " psycopg2 · tcp, psycopg · tcp,"
    )
    compare(before.pk, after.pk, "--fail-on", "15%")


def test_an_error_of_a_check_has_a_code_of_its_own() -> None:
    """A job must not take a missing baseline for a slower query."""
    run, empty = ended(), make_run(Run.Status.FAILED)
    one, other = (make_results(make_run(), routes=(route,)) for route in ("socket", "tcp"))
    limit = ("--fail-on", "5%")
    for words in (
        (run.pk, "--baseline", "LAST"),
        (run.pk, "--baseline", "no-such-file"),
        (run.pk, "--baseline", "na\udcefve.json"),  # a byte that is no UTF-8
        (run.pk, 4711),
        (run.pk, empty.pk),
        (one.pk, other.pk),
    ):
        assert failure(*words, *limit).returncode == 4
        assert failure(*words).returncode == 1
    assert failure(run.pk, *limit).returncode == 2


def test_an_error_of_the_database_or_of_a_full_disk_has_it_too(monkeypatch: pytest.MonkeyPatch) -> None:
    before, after = ended(), ended()
    for error in (DatabaseError("no connection"), OSError(errno.ENOSPC, "No space left on device")):
        monkeypatch.setattr("pgperf.cli.compare.stored", Mock(side_effect=error))
        assert failure(before.pk, after.pk, "--fail-on", "5%").returncode == 4
        assert failure(before.pk, after.pk).returncode == 1


def test_it_answers_where_nothing_can_be_written() -> None:
    class Full(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    before, after = ended(), ended({"django_orm": 1.1})
    with pytest.raises(CommandError, match="Worse by more than 5 %"):
        call_command("pgperf", "compare", str(before.pk), str(after.pk), "--fail-on", "5%", stdout=Full())
