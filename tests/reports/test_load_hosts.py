"""The load hosts of a run, and what it means that some were lost."""

import csv
import io
import re

import pytest

from pgperf.cli import markdown, result
from pgperf.models import Run, VariantResult
from pgperf.reports import answer, csv_results, load_hosts
from pgperf.reports.run_rows import read
from pgperf.reports.sections import comparisons, speed
from pgperf.reports.table import CAUTION
from tests import factories
from tests.cpu_accounts import add_cpu_accounts
from tests.reports.reading import texts

pytestmark = pytest.mark.django_db

OF_FOUR = "Load host b was lost: of the variants with 4 load hosts, 4 of 10 blocks had 3."


@pytest.fixture
def run() -> Run:
    """libpq and the ORM with 8 clients on 1, 2 and 4 load hosts, of which b was lost in block 7."""
    run = factories.make_results(
        factories.make_run(), routes=("tcp",), layers=("libpq", "django_orm"), clients=(8,)
    )
    add_cpu_accounts(run)
    blocks = {1: {"1": 10}, 2: {"2": 10}, 4: {"3": 4, "4": 6}}
    for row in run.variants.filter(control=0):
        for hosts, found in blocks.items():
            _spread(row, hosts, found)
    run.variants.filter(hosts=0).delete()
    run.environment = {**run.environment, "load_hosts": {"lost": {"b": "load host b: no sign of life"}}}
    run.save()
    return run


def _spread(row: VariantResult, hosts: int, blocks: dict[str, int]) -> None:
    row.pk, row.hosts, row.position = None, hosts, row.position + 100
    row.label = row.identity.label
    row.cpu_account = {**row.cpu_account, "load_host_blocks": blocks}
    row.save(force_insert=True)


def compare(run: Run, hosts: int, baseline: int) -> None:
    variant, base = (run.variants.get(layer="libpq", hosts=number) for number in (hosts, baseline))
    run.comparisons.create(
        position=1,
        variant=variant,
        baseline=base,
        ratio=1.0,
        low=0.9,
        high=1.1,
        outcome="inconclusive",
        delta_us=0.0,
        delta_low_us=-1.0,
        delta_high_us=1.0,
        pairs=6,
        mde=0.02,
    )


def count(run: Run, hosts: int, blocks: dict[str, int], **which: str) -> None:
    for row in run.variants.filter(hosts=hosts, **which):
        row.cpu_account["load_host_blocks"] = blocks
        row.save()


def test_the_blocks_with_fewer_load_hosts_are_counted(run: Run) -> None:
    """Two of the three that are left took the parts of the variants with two."""
    assert load_hosts.lost(read(run)) == [OF_FOUR]


def test_each_number_of_load_hosts_that_became_smaller_has_a_sentence(run: Run) -> None:
    run.environment["load_hosts"]["lost"] |= {"c": "killed", "d": "killed"}
    run.save()
    count(run, 4, {"4": 1, "3": 2, "1": 7})
    count(run, 2, {"2": 3, "1": 7})
    assert load_hosts.lost(read(run)) == [
        "Load hosts b, c, d were lost: of the variants with 2 load hosts, 7 of 10 blocks had 1.",
        "Load hosts b, c, d were lost: of the variants with 4 load hosts, 9 of 10 blocks had 1 or 3.",
    ]


def test_the_variant_with_the_most_such_blocks_counts(run: Run) -> None:
    count(run, 4, {"4": 5, "3": 5}, layer="django_orm")
    assert "5 of 10 blocks" in load_hosts.lost(read(run))[0]


def test_a_lost_host_that_left_no_block_with_fewer_is_named_all_the_same(run: Run) -> None:
    for hosts in (1, 2, 4):
        count(run, hosts, {str(hosts): 10})
    assert load_hosts.lost(read(run)) == ["Load host b was lost; others took its part."]
    run.environment["load_hosts"]["lost"] |= {"c": "killed"}
    assert load_hosts.lost(read(run)) == ["Load hosts b, c were lost; others took their parts."]


def test_fewer_clients_than_hosts_lack_no_host(run: Run) -> None:
    run.variants.update(clients=3)
    assert load_hosts.lost(read(run)) == ["Load host b was lost; others took its part."]


def test_a_run_that_lost_none_says_nothing(run: Run) -> None:
    run.environment = {"load_hosts": {"hosts": {}}}
    assert load_hosts.lost(read(run)) == []


def test_the_answer_is_cautious(run: Run) -> None:
    (sure,) = (point for point in answer.points(read(run)) if point.question == "How sure")
    assert (sure.lines[0].text, sure.lines[0].mark) == (OF_FOUR, CAUTION)


def test_comparisons_of_numbers_of_load_hosts_have_the_note(run: Run) -> None:
    assert OF_FOUR not in comparisons.part(read(run)).get("notes", ())
    compare(run, 4, 1)
    assert OF_FOUR in comparisons.part(read(run))["notes"]


def test_the_terminal_and_a_ticket_have_it_too(run: Run) -> None:
    assert OF_FOUR in result.report(read(run))
    assert OF_FOUR in markdown.markdown(read(run))


USES = [
    {"name": "a", "cpus": 2, "clients": 0.97, "busy": 0.5, "steal": 0.0, "network": 0.25, "machine_cpus": 4},
    {"name": "b", "cpus": 2, "clients": 0.5, "busy": 0.4, "steal": None, "network": None},
]


@pytest.fixture
def used(run: Run) -> Run:
    for row in run.variants.filter(hosts=2, layer="libpq"):
        row.cpu_account["load_hosts"] = USES
        row.save()
    return run


def test_each_load_host_has_a_row_and_an_unknown_network_is_not_0(used: Run) -> None:
    table = load_hosts.use_table(used.variants.all()).shown()
    assert table.heads[1:] == (
        "Load host", "CPUs for clients", "Used by clients", "All CPUs busy", "Steal", "Network",
    )  # fmt: skip
    assert texts(table) == [
        ["libpq (C) · tcp · 8 clients · 2 load hosts", "a", "2.00", "97.0 %", "50.0 %", "0.0 %", "25.0 %"],
        ["libpq (C) · tcp · 8 clients · 2 load hosts", "b", "2.00", "50.0 %", "40.0 %", "unknown", "unknown"],
    ]


def test_the_page_and_the_terminal_have_the_table(used: Run) -> None:
    captions = [table.caption for table in speed.part(read(used))["cpu_account"]]
    assert "Load hosts" in captions
    assert re.search(r"2 load hosts +b +2.00 .* unknown +unknown\n", result.report(read(used)) + "\n")


def test_a_run_without_load_hosts_has_no_such_table() -> None:
    plain = add_cpu_accounts(factories.make_results(factories.make_run(), routes=("tcp",)))
    part = speed.part(read(plain))
    assert not part["has_load_hosts"]
    assert "Load hosts" not in [table.caption for table in part["cpu_account"]]


def test_a_file_has_the_exact_values_and_nothing_where_they_are_unknown(used: Run) -> None:
    first, second = csv.DictReader(io.StringIO(csv_results.load_hosts_csv(used)))
    assert (first["run_id"], first["label"]) == (str(used.pk), "libpq · tcp · 8 clients · 2 load hosts")
    assert {name: first[name] for name in USES[0]} == {name: str(value) for name, value in USES[0].items()}
    assert (second["steal"], second["network"], second["machine_cpus"]) == ("", "", "")
