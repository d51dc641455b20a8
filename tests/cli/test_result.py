"""What a terminal shows of a run: the figures of the rows, in tables that line up."""

from typing import Any

import pytest

from pgperf.cli.result import report
from pgperf.models import Run, VariantResult
from pgperf.reports.run_json import run_json
from tests.factories import make_results, make_run

pytestmark = pytest.mark.django_db


@pytest.fixture
def run() -> Run:
    return make_results(make_run())


def parts(run: Run) -> list[list[str]]:
    return [part.splitlines() for part in report(run_json(run)).split("\n\n")]


def test_a_ladder_per_route_with_every_step(run: Run) -> None:
    ladders = [part for part in parts(run) if part[0].startswith("Ladder over")]
    assert [ladder[0].split()[2].rstrip(":") for ladder in ladders] == ["socket", "tcp", "pgbouncer"]
    titles = [line.split("  ")[0] for line in ladders[0][2:]]
    assert titles == ["libpq (C)", "psycopg 3", "Django cursor", "Django ORM"]


def test_a_step_has_its_figures_with_intervals(run: Run) -> None:
    orm = run.summary["ladders"][0]["steps"][-1]
    line = next(part for part in parts(run) if part[0].startswith("Ladder over socket"))[-1]
    assert f"{orm['us']:.1f}  [{orm['low']:.1f}, {orm['high']:.1f}]" in line
    assert f"+{orm['step_us']:.1f}  [+{orm['step_low_us']:.1f}, +{orm['step_high_us']:.1f}]" in line
    assert f"{orm['ratio']:.3f}  [{orm['ratio_low']:.3f}, {orm['ratio_high']:.3f}]" in line


def test_columns_line_up(run: Run) -> None:
    for part in parts(run):
        if part[0].startswith("Ladder over"):
            assert len({line.index("]") for line in part[2:]}) == 1


def test_side_rungs_controls_and_cold_phases(run: Run) -> None:
    heads = [part[0].split("  ")[0] for part in parts(run)]
    assert heads[-3:] == ["Beside the ladder", "Controls (a variant against itself)", "Cold phases, µs"]
    beside = parts(run)[-3]
    assert [line.split("  ")[0] for line in beside[1:]] == [
        f"psycopg2 · {r}" for r in ("socket", "tcp", "pgbouncer")
    ]
    assert len(parts(run)[-2]) == 3


def test_unknown_is_a_question_mark(run: Run) -> None:
    run.variants.update(cold_us={"startup": 1.0})
    assert "?" in parts(run)[-1][1]


def test_what_was_skipped_and_what_is_unfinished(run: Run) -> None:
    run.summary |= {"skipped": {"libpq": "the C client is not built"}, "partial": True}
    text = report(run_json(run))
    assert "Skipped libpq: the C client is not built" in text
    assert "Unfinished" in text.splitlines()[1]


def test_a_run_without_results() -> None:
    run = make_run(Run.Status.FAILED)
    assert report(run_json(run)) == f"orm-overhead #{run.pk} on demo: failed"


@pytest.mark.parametrize(
    ("idle", "said"), [("awake", "Processors were kept awake"), ("system", "Idle processors could sleep")]
)
def test_the_headline_says_whether_processors_slept(run: Run, idle: str, said: str) -> None:
    run.environment = {**run.environment, "idle": {"idle": idle, "note": ""}}
    assert said in report(run_json(run)).split("\n\n")[0]


def test_what_bounds_each_variant_and_which_law_its_figures_break(run: Run) -> None:
    assert not [part for part in parts(run) if part[0].startswith("What bounds it")]
    row = run.variants.get(label="django_orm · socket")
    row.verdict = {
        "word": "client_cpu", "certainty": "likely", "evidence": "client CPU: 165 of 211 µs; server 21 µs",
        "checks": {"little": {"holds": False}, "utilisation": {"server": {"holds": True}, "clients": {"holds": False}}},
    }  # fmt: skip
    row.save()
    run.variants.filter(label="libpq · socket").update(
        verdict={"word": "disturbed", "certainty": None, "evidence": "steal"}
    )
    found = next(part for part in parts(run) if part[0].startswith("What bounds it"))
    assert found[1].split("  ")[0] == "libpq · socket"
    assert found[1].endswith("disturbed           steal")
    assert found[2].startswith(
        "django_orm · socket  client CPU, likely  client CPU: 165 of 211 µs; server 21 µs"
    )
    assert found[3:] == [
        "django_orm · socket: Little's law does not hold",
        "django_orm · socket: the utilisation law (clients) does not hold",
    ]


def test_more_clients_are_no_other_workload(run: Run) -> None:
    first = run.comparisons.filter(aa=False)[0]
    four, eight = (_more(run, clients=count) for count in (4, 8))
    loop, cure = (_more(run, workload=name, named=True) for name in ("loop", "cure"))
    for at, (variant, baseline) in enumerate(((eight, four), (cure, loop))):
        first.pk, first.position, first.variant, first.baseline = None, 100 + at, variant, baseline
        first.save()
    found = {part[0].split("  ")[0]: part[1:] for part in parts(run)}
    assert [line.split("  ")[0] for line in found["More clients"]] == ["libpq · tcp · 8 clients"]
    assert [line.split("  ")[0] for line in found["One workload against the other"]] == ["libpq · tcp · cure"]


def test_what_the_figures_do_not_tell_stands_with_the_evidence(run: Run) -> None:
    capacity = {"withheld": True, "why": "the clients' processors were 97% busy"}
    said = {"word": "client_cpu", "certainty": "likely", "evidence": "client CPU: 165 of 211 µs"}
    run.variants.filter(label="libpq · tcp").update(verdict={**said, "checks": {"capacity": capacity}})
    allowed = {"capacity": {"withheld": False, "why": ""}}
    run.variants.filter(label="libpq · socket").update(verdict={**said, "checks": allowed})
    found = next(part for part in parts(run) if part[0].startswith("What bounds it"))
    assert found[1].endswith("client CPU: 165 of 211 µs")
    assert found[2].endswith(
        "165 of 211 µs. Says nothing of what the server could do: the clients' processors were 97% busy"
    )


def _more(run: Run, **fields: Any) -> VariantResult:
    """Another variant of libpq over TCP."""
    row = run.variants.get(label="libpq · tcp")
    row.pk, row.position = None, run.variants.count()
    for name, value in fields.items():
        setattr(row, name, value)
    row.label = row.identity.label
    row.save()
    return row
