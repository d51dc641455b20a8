"""What a terminal shows of a run: the figures of the rows, in tables that line up."""

import re
from typing import Any

import pytest

from pgperf.analysis.consistency_checks import Checks, LittlesLaw, UtilisationLaw
from pgperf.analysis.verdict import Basis, Capacity, Finding, Verdict
from pgperf.cli.result import report
from pgperf.models import Run, VariantResult
from pgperf.reports.ladders import ladder_table
from pgperf.reports.run_rows import read
from tests.catalog_runs import make_catalog_run
from tests.factories import make_results, make_run, stored_verdict

pytestmark = pytest.mark.django_db


@pytest.fixture
def run() -> Run:
    return make_results(make_run())


def parts(run: Run) -> list[list[str]]:
    return [part.splitlines() for part in report(read(run)).split("\n\n")]


def part_of(run: Run, title: str) -> list[str]:
    """The lines of the table whose caption begins so."""
    return next(part for part in parts(run) if part[0].startswith(title))


def test_a_ladder_per_route_with_every_step(run: Run) -> None:
    ladders = [part for part in parts(run) if part[0].startswith("Ladder over")]
    assert [ladder[0].split()[2].rstrip(":") for ladder in ladders] == ["socket", "tcp", "pgbouncer"]
    assert ladders[0][0] == "Ladder over socket: Django on psycopg 3, mode simple, 1 client, placement apart"
    titles = [line.split("  ")[0] for line in ladders[0][2:]]
    assert titles == ["libpq (C)", "psycopg 3", "Django cursor", "Django ORM", "psycopg2, alternative"]


def test_a_figure_reads_as_on_the_page(run: Run) -> None:
    rows = read(run)
    page = ladder_table(rows.ladders[0], rows.ladders)
    lines = part_of(run, "Ladder over socket")[2:]
    for cells, line in zip(page.rows, lines, strict=True):
        assert re.split(" {2,}", line) == [cell.text for cell in cells]


def test_columns_line_up(run: Run) -> None:
    for part in parts(run):
        if part[0].startswith("Ladder over"):
            assert len(set(map(len, part[2:]))) == 1


def test_controls_and_cold_phases_come_last(run: Run) -> None:
    controls, cold = parts(run)[-2:]
    assert controls[0] == "Controls: the same thing against itself"
    assert cold[0].startswith("Cold phases")
    assert len(controls) == 2 + 2


def test_variants_on_no_ladder_have_their_times_and_comparisons(run: Run) -> None:
    run.summary |= {"ladders": [ladder | {"side": []} for ladder in run.summary["ladders"]]}
    throughput = part_of(run, "Throughput")
    assert [line.split("  ")[0] for line in throughput[2:]] == [
        f"psycopg2 · {route}" for route in ("socket", "tcp", "pgbouncer")
    ]
    assert re.split(" {2,}", part_of(run, "One layer against another")[2])[:2] == [
        "psycopg2 · socket",
        "libpq (C)",
    ]


def test_unknown_is_a_word(run: Run) -> None:
    run.variants.update(cold_us={"startup": 1.0})
    run.variants.filter(layer="libpq").update(cold_us={"startup": 1.0, "connect": 2.0})
    libpq, psycopg2 = parts(run)[-1][2:4]
    assert "unknown" not in libpq
    assert "unknown" in psycopg2


def test_what_was_skipped_and_what_is_partial(run: Run) -> None:
    run.summary |= {"skipped": [{"layer": "libpq", "reason": "the C client is not built"}], "partial": True}
    text = report(read(run))
    assert "Skipped libpq (C): the C client is not built" in text
    assert "Partial results" in text.splitlines()[1]


def test_a_run_without_results() -> None:
    run = make_run(Run.Status.FAILED)
    assert report(read(run)) == f"orm-overhead #{run.pk} on demo: failed"


@pytest.mark.parametrize(
    ("idle", "said"), [("awake", "CPUs were kept awake"), ("system", "Idle CPUs could sleep")]
)
def test_the_headline_says_whether_cpus_slept(run: Run, idle: str, said: str) -> None:
    run.environment = {**run.environment, "idle": {"idle": idle, "note": ""}}
    assert said in report(read(run)).split("\n\n")[0]


def test_verdicts_and_failed_consistency_checks(run: Run) -> None:
    assert not [part for part in parts(run) if part[0].startswith("Bottleneck of each variant")]
    row = run.variants.get(label="django_orm · socket")
    laws = {"server": UtilisationLaw(holds=True), "clients": UtilisationLaw(holds=False)}
    row.verdict = stored_verdict(checks=Checks(LittlesLaw(8, holds=False), laws))
    row.save()
    stolen = Verdict("disturbed", finding=Finding(Basis.STEAL, "host", 0.5))
    run.variants.filter(label="libpq · socket").update(verdict=stolen.to_json())
    found = part_of(run, "Bottleneck of each variant")
    assert re.split(" {2,}", found[2]) == [
        "libpq (C) · socket",
        "disturbed",
        "the hypervisor took 50 % of the host's CPU time (steal)",
    ]
    (orm,) = [line for line in found if line.startswith("Django ORM · socket")]
    assert re.split(" {2,}", orm) == [
        "Django ORM · socket", "client CPU, likely", "165 of 211 µs; network and wake-up 40 µs",
    ]  # fmt: skip
    failed = next(part for part in parts(run) if "Little" in part[0])
    assert len(failed) == 2
    assert all(line.startswith("Django ORM · socket: ") for line in failed)


def test_more_clients_are_no_other_workload(run: Run) -> None:
    first = run.comparisons.filter(aa=False)[0]
    four, eight = (_more(run, clients=count) for count in (4, 8))
    loop, cure = (_more(run, workload=name, named=True) for name in ("loop", "cure"))
    for at, (variant, baseline) in enumerate(((eight, four), (cure, loop))):
        first.pk, first.position, first.variant, first.baseline = None, 100 + at, variant, baseline
        first.save()
    clients = part_of(run, "More clients")
    assert re.split(" {2,}", clients[2])[:2] == ["libpq (C) · tcp · 8 clients", "4 clients"]
    works = part_of(run, "One workload against the other")
    assert re.split(" {2,}", works[2])[:2] == ["libpq (C) · tcp · cure", "loop"]
    assert (len(clients), len(works)) == (3, 3)


@pytest.mark.parametrize(
    ("fields", "title", "first", "against"),
    [
        ({"hosts": 4}, "More load hosts", "libpq (C) · tcp · 4 load hosts", "no load hosts"),
        (
            {"rate": 500.0, "schedule": "constant"}, "One rate against another",
            "libpq (C) · tcp · 500/s constant", "closed loop",
        ),
    ],
)  # fmt: skip
def test_comparisons_that_no_ladder_shows_are_printed(
    run: Run, fields: dict[str, Any], title: str, first: str, against: str
) -> None:
    run.summary["ladders"] += [{**ladder, **fields} for ladder in run.summary["ladders"]]
    row = run.comparisons.filter(aa=False)[0]
    row.pk, row.position = None, 100
    row.variant, row.baseline = _more(run, **fields), run.variants.get(label="libpq · tcp")
    row.save()
    line = re.split(" {2,}", part_of(run, title)[2])
    assert line[0] == first
    assert line[1].startswith(against)


def test_what_connecting_costs_beside_the_published_figures_and_the_notes_of_layers() -> None:
    cost = make_catalog_run("connection-cost")
    phases = [re.split(" {2,}", line) for line in part_of(cost, "Connect, operate and close")[2:]]
    libpq = [
        phase for title, phase, *_times in phases if title == "libpq (C) · tcp · 20 clients · per operation"
    ]
    assert libpq == ["connect", "operate", "close"]
    rates = [re.split(" {2,}", line) for line in part_of(cost, "Throughput with and without connecting")]
    assert rates[1][-2:] == ["Published, including", "Published, excluding"]
    published = {title: figures[-2:] for title, *figures in rates[2:]}
    assert published["pgbench -j 1 · tcp · 20 clients · per operation"] == ["67.5", "15,423"]
    text = report(read(cost))
    excluding = "Throughput excluding connection time is the number of clients divided by the mean time"
    assert f"{excluding} to operate." in text
    assert "Published figures: Cybertec" in text
    assert "one thread makes all connections, one after the other" in text


def test_a_run_that_keeps_its_connections_shows_nothing_of_connecting(run: Run) -> None:
    assert "gives the connection back" not in report(read(run))
    assert not [part for part in parts(run) if part[0].startswith("Connect, operate and close")]


def test_a_withheld_claim_is_said_once_below_the_table(run: Run) -> None:
    for route, capacity in (("tcp", Capacity(True, "clients", 0.97)), ("socket", Capacity(False))):
        verdict = stored_verdict(capacity=capacity)
        run.variants.filter(label=f"libpq · {route}").update(verdict=verdict)
    said = "This run does not show how much the server could do: the clients' CPUs were 97 % busy (libpq (C) · tcp)"
    assert report(read(run)).count(f"\n\n{said}\n\n") == 1
    assert "This run does not show" not in " ".join(part_of(run, "Bottleneck of each variant"))


def _more(run: Run, **fields: Any) -> VariantResult:
    """Another variant of libpq over TCP."""
    row = run.variants.get(label="libpq · tcp")
    row.pk, row.position = None, run.variants.count()
    for name, value in fields.items():
        setattr(row, name, value)
    row.label = row.identity.label
    row.save()
    return row
