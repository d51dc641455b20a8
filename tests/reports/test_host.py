"""The host over the run, and as top shows it."""

from typing import Any

import pytest

from pgperf.analysis.timeline import Timeline
from pgperf.models import VariantResult
from pgperf.reports import host
from pgperf.reports.answer.judged import judged
from pgperf.reports.chart import Chart
from pgperf.reports.labels import variant_title
from pgperf.reports.run_rows import read
from pgperf.reports.sections import host as section
from tests import factories
from tests.cpu_accounts import add_cpu_accounts, timeline
from tests.reports.reading import texts

LINE = timeline(["libpq · tcp", "django_orm · tcp"])


@pytest.fixture
def variants(db: None) -> list[VariantResult]:
    run = factories.make_results(factories.make_run(), layers=("libpq", "django_orm"), clients=(1, 16))
    return list(add_cpu_accounts(run).variants.all())


ROWS = [
    VariantResult(
        label=label,
        layer=label.partition(" ")[0],
        mode="simple",
        route="tcp",
        clients=1,
        connect="persistent",
    )
    for label in dict.fromkeys(LINE["variant"])
]


def line(**changes: Any) -> Timeline:
    """The stored timeline with these columns, as a record."""
    found = Timeline.from_json({**LINE, **changes})
    assert found
    return found


def chart_of(**changes: Any) -> Chart:
    return host.timeline(line(**changes), ROWS)


def test_the_timeline_stacks_all_but_idle_time() -> None:
    chart = chart_of()
    assert "idle" not in [series["name"] for series in chart["series"]]
    assert chart["series"][0]["values"] == [100 * share for share in LINE["roles"]["clients"]]
    assert chart["x"] == LINE["seconds"]
    assert chart["titles"][:2] == ["libpq (C) · tcp", "Django ORM · tcp"]
    assert chart["max"] == 100


def test_an_unknown_moment_is_a_gap() -> None:
    chart = chart_of(roles=LINE["roles"] | {"server": [None, *LINE["roles"]["server"][1:]]})
    server = next(series for series in chart["series"] if series["name"] == "server")
    assert server["values"][0] is None


def test_a_point_of_several_slices_names_no_variant() -> None:
    chart = chart_of(variant=[None, *LINE["variant"][1:]])
    assert chart["titles"][:2] == ["", "Django ORM · tcp"]


def test_no_line_is_drawn_over_the_pause_between_two_blocks() -> None:
    block = [at // 60 for at in range(len(LINE["seconds"]))]
    pauses = block[-1]
    chart = chart_of(block=block)
    before, pause, after = chart["x"][59:62]
    assert (before, after) == (LINE["seconds"][59], LINE["seconds"][60])
    assert before < pause < after
    assert chart["titles"][60] == ""
    assert len(chart["x"]) == len(chart["titles"]) == len(block) + pauses
    for series in chart["series"]:
        assert [at for at, value in enumerate(series["values"]) if value is None] == [
            61 * (number + 1) - 1 for number in range(pauses)
        ]


def test_the_timeline_s_table_has_the_means_of_its_intervals() -> None:
    table = host.timeline_table(line())
    assert len(table.rows) == 20
    assert table.rows[0][0].text == "0.00 … 5.00"
    assert table.rows[0][1].value == pytest.approx(sum(LINE["roles"]["clients"][:6]) / 6)
    assert table.heads[-1] == "Idle"


def test_a_role_that_is_not_known_is_named_in_the_caption() -> None:
    roles = {"clients": [0.1, 0.2], "server": [None, None]}
    table = host.timeline_table(line(seconds=[0.0, 1.0], variant=[None] * 2, block=[0, 0], roles=roles))
    assert table.heads == ("Seconds", "Clients")
    assert table.caption.endswith("not known here: pooler, server, server auxiliaries, other processes, "
                                  "unattributed, iowait, steal, idle")  # fmt: skip


def test_many_processes_of_a_role_are_one_row(variants: list[VariantResult]) -> None:
    found = {(row[0], row[1]): row[2:] for row in texts(host.role_table(variants))}
    assert found["libpq (C) · pgbouncer · 16 clients", "client"] == [
        "pgperf-libpq",
        "16",
        "30.0 … 45.0",
        "40.0",
    ]
    assert found["libpq (C) · pgbouncer · 16 clients", "pooler"] == ["pgbouncer", "1", "21.4", "9.00"]
    roles = [row[1] for row in texts(host.role_table(variants)) if row[0] == "Django ORM · pgbouncer"]
    assert roles == ["client", "pooler", "server", "other processes"]


def test_the_host_s_line(variants: list[VariantResult]) -> None:
    table = host.host_table(variants)
    assert table.heads[:3] == ("Variant", "us, %", "sy, %")
    assert texts(table)[0][2] == "6.20"
    assert texts(table)[0][-3:] == ["1.31", "0.94", "0.61"]
    variants[0].top["host"] = {"us": 3.0}
    assert texts(host.host_table(variants))[0][1:3] == ["3.00", "unknown"]


def test_the_server_s_host_has_its_own_line(variants: list[VariantResult]) -> None:
    variants[0].top["server_host"] = {"host": {"us": 7.0}}
    first, second, third = texts(host.host_table(variants))[:3]
    assert second[:2] == [f"{first[0]}, the server's host", "7.00"]
    assert not third[0].endswith("server's host")


def test_the_line_of_a_variant_on_load_hosts_is_that_of_the_owner_s_host(
    variants: list[VariantResult],
) -> None:
    variants[0].hosts = 4
    variants[0].top["server_host"] = {"host": {"us": 7.0}}
    own, server, other = (cells[0] for cells in texts(host.host_table(variants))[:3])
    assert own.endswith("4 load hosts, the owner's host")
    assert server.endswith("4 load hosts, the server's host")
    assert not other.endswith("host")


def test_the_busiest_processes_come_first_and_the_rest_is_counted(variants: list[VariantResult]) -> None:
    shown = {each.title: each for each in host.process_tables(variants)}
    many = shown["libpq (C) · socket · 16 clients"]
    assert texts(many.table)[0][:5] == ["pgperf-libpq", "4115", "app", "client", "45.0"]
    assert (len(many.table.rows), many.more) == (12, "21 more are not shown.")
    assert shown["libpq (C) · socket"].more == ""


def test_of_many_variants_the_page_has_the_processes_of_those_that_its_answer_is_about(
    variants: list[VariantResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = read(variants[0].run)
    every = section.part(rows)
    assert every["left"] == 0
    monkeypatch.setattr(section, "_MOST_VARIANTS", len(variants) - 1)
    few = section.part(rows)
    about = {variant_title(row) for row in judged(rows)}
    assert {each.title for each in few["processes"]} == about
    assert 0 < few["left"] == len(every["processes"]) - len(about)


def test_a_process_with_unknown_fields(variants: list[VariantResult]) -> None:
    variants[0].top["processes"] = [{"role": "distance", "pid": 5, "name": "relay", "cpu_percent": None}]
    (first, *_rest) = texts(host.role_table(variants))
    assert first[1:] == ["distance", "relay", "1", "unknown", "unknown"]
