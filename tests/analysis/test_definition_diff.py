"""In what two runs differ besides their figures."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgperf.analysis.definition_diff import (
    Difference,
    differences,
    environment_differences,
    fact,
    setting,
    setting_differences,
)

BEFORE = {
    "python": "3.11.2",
    "packages": {"Django": "5.2.19", "psycopg": "3.3.9"},
    "machine": {"kernel": "6.1", "load_average": [0.1, 0.2, 0.3]},
    "routes": ("socket", "tcp"),
    "pooler": None,
}


def test_a_definition_does_not_differ_from_itself() -> None:
    assert differences(BEFORE, {**BEFORE, "routes": ["socket", "tcp"]}) == []


def test_nested_values_are_named_with_dots() -> None:
    after = {**BEFORE, "packages": {"Django": "6.0", "psycopg": "3.3.9"}, "routes": ["socket"]}
    assert differences(BEFORE, after) == [
        Difference("packages.Django", "5.2.19", "6.0"),
        Difference("routes", "socket, tcp", "socket"),
    ]


def test_what_one_of_them_lacks_is_empty() -> None:
    after = {**BEFORE, "packages": {"Django": "5.2.19", "asyncpg": "0.31"}, "pooler": {"version": "1.25"}}
    assert set(differences(BEFORE, after)) == {
        Difference("packages.psycopg", "3.3.9", ""),
        Difference("packages.asyncpg", "", "0.31"),
        Difference("pooler.version", "", "1.25"),
    }


def test_what_a_host_measures_of_itself_and_the_seed_differ_by_nature() -> None:
    moment = {
        "replicates": True,
        "seed": 3, "machine": {"kernel": "6.1", "load_average": [0.1, 0.2, 0.3]},
        "memory": {"unlimited": [], "free_bytes": 9, "allowed_bytes": 4, "client_bytes": 1},
        "load": {"limits": {"MAX_LAG_SECONDS": 60}, "at_start": {"lag_s": 0.1}},
        "server_host": {"agent": "db1", "clock_error_us": 3.0, "agent_cpu_percent": 1.0},
        "ending": {"reason": "precision", "seconds": 58.2, "precision": 0.016},
        "written": {"tables": ["a"], "rounds_with_checkpoint": 0},
        "predicted": {"precision": 0.03, "seconds": 60.0}, "page_parts": [{"workload": "books", "plain_us": 900.0}],
        "statement_times": [{"workload": "books", "each": [{"numbers": [1], "us": 90.0}]}],
    }  # fmt: skip
    another = {
        "seed": 7, "machine": {"kernel": "6.1", "load_average": [9, 9, 9]},
        "memory": {"unlimited": [], "free_bytes": 8, "allowed_bytes": 3, "client_bytes": 2},
        "load": {"limits": {"MAX_LAG_SECONDS": 60}, "at_start": {"lag_s": 0.2}},
        "server_host": {"agent": "db1", "clock_error_us": 4.0, "agent_cpu_percent": 2.0},
        "ending": {"reason": "budget", "seconds": 89.4, "precision": 0.42},
        "written": {"tables": ["a"], "rounds_with_checkpoint": 2},
        "predicted": {"precision": 0.05, "seconds": 60.0}, "page_parts": [{"workload": "books", "plain_us": 950.0}],
        "statement_times": [{"workload": "books", "each": [{"numbers": [1], "us": 91.0}]}],
    }  # fmt: skip
    assert differences(moment, another) == []


def test_values_of_the_user_are_not_told() -> None:
    found = differences(
        {"workloads": [{"args": ["CANARY"]}]}, {"workloads": [{"args": ["other"], "sql": "CANARY"}]}
    )
    assert [difference.what for difference in found] == ["workloads.1.args", "workloads.1.sql"]
    assert "CANARY" not in str(found)


def test_a_user_of_the_site_is_not_told() -> None:
    """Whom a page was seen as: the page's own report names nobody."""
    pages = ({"workloads": [{"page": {"user": name, "method": "GET"}}]} for name in ("CANARY", ""))
    assert differences(*pages) == [("workloads.1.page.user", "(not shown)", "(not shown)")]


def test_long_values_are_cut() -> None:
    (found,) = differences({"x": "a" * 500}, {"x": "b" * 500})
    assert len(found.before) == len(found.after) == 120


class TestSettings:
    """`max_wal_size` marks the runs that stored all settings that are not defaults."""

    NEW = {"max_wal_size": "1GB"}

    @pytest.mark.parametrize(
        ("before", "after", "expected"),
        [
            ({"work_mem": "4MB"}, {"work_mem": "4MB"}, []),
            ({"work_mem": "4MB"}, {"work_mem": "16MB"}, [("work_mem", "4MB", "16MB")]),
            ({"work_mem": "4MB"}, {}, []),  # an older run stored some settings only
            ({}, {"work_mem": "4MB"}, []),
            ({**NEW, "jit_above_cost": "1"}, NEW, [("jit_above_cost", "1", "")]),
            (NEW, {**NEW, "geqo": "off"}, [("geqo", "", "off")]),
            (NEW, {"work_mem": "4MB"}, [("work_mem", "", "4MB")]),
            ({"work_mem": None}, {"work_mem": "4MB"}, [("work_mem", "", "4MB")]),
            ({}, {}, []),
        ],
    )
    def test_a_setting_that_one_lacks_is_a_default_or_unknown(
        self, before: dict[str, Any], after: dict[str, Any], expected: list[tuple[str, str, str]]
    ) -> None:
        assert setting_differences(before, after) == expected

    @given(*[st.dictionaries(st.sampled_from(["a", "b", "max_wal_size"]), st.sampled_from(["1", "2"]))] * 2)
    def test_both_directions_tell_the_same(self, before: dict[str, str], after: dict[str, str]) -> None:
        forth, back = setting_differences(before, after), setting_differences(after, before)
        assert sorted(forth) == sorted(each._replace(before=each.after, after=each.before) for each in back)


def test_a_layer_that_one_run_lacks_is_one_difference() -> None:
    libpq = {"libpq": "18.6", "client": "0.1.0"}
    asyncpg = {"driver": "asyncpg", "python": "3.11.2", "driver_version": "0.30"}
    alone, both = {"layers": {"libpq": libpq}}, {"layers": {"libpq": libpq, "asyncpg": asyncpg}}
    facts = "driver asyncpg, python 3.11.2, driver_version 0.30"
    assert differences(alone, both) == [("layers.asyncpg", "", facts)]
    assert differences(both, alone) == [("layers.asyncpg", facts, "")]
    newer = {"layers": {"libpq": {**libpq, "libpq": "18.7"}}}
    assert [each.what for each in differences(both, newer)] == ["layers.libpq.libpq", "layers.asyncpg"]


@pytest.mark.parametrize("prefix", ["", "environments.next."])
@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ({}, {"answer": "200, 40 bytes"}, []),  # an older run noted none
        ({"answer": "200, 40 bytes"}, {"answer of list.v2": "200, 40 bytes"}, []),
        ({"answer": "200, 40 bytes"}, {"answer": "200, 50 bytes"}, ["answer"]),
        ({"answer of list": "200, 4 bytes"}, {"answer of list": "200, 5 bytes"}, ["answer of list"]),
        ({}, {"answers": "42"}, ["answers"]),
    ],
)
def test_what_a_page_answered_is_compared_where_both_runs_noted_it(
    prefix: str, before: dict[str, str], after: dict[str, str], told: list[str]
) -> None:
    def run(answers: dict[str, str]) -> dict[str, Any]:
        layers = {"layers": {"http": {"client": "0.1.0", **answers}}}
        return {"environments": {"next": layers}} if prefix else layers

    assert [each.what for each in differences(run(before), run(after))] == [
        f"{prefix}layers.http.{name}" for name in told
    ]


def test_settings_are_no_facts_of_the_environment() -> None:
    assert environment_differences({"server": {"jit": "on"}}, {"server": {"jit": "off"}}) == []


def test_a_fact_reads_as_in_the_difference() -> None:
    asyncpg = {"driver": "asyncpg", "driver_version": "0.30"}
    after = {**BEFORE, "packages": {"Django": "6.0"}, "pooler": {"version": "1.25"}, "layers": {"a": asyncpg}}
    found = differences(BEFORE, after)
    assert len(found) == 4
    for each in found:
        assert (fact(BEFORE, each.what), fact(after, each.what)) == (each.before, each.after)
    assert fact({"workloads": [{"sql": "CANARY"}]}, "workloads.1.sql") == "(not shown)"


@pytest.mark.parametrize(
    ("settings", "known"),
    [({"jit": "on"}, "on"), ({"max_wal_size": "1GB"}, ""), ({"work_mem": "4MB"}, None), ({}, None)],
)
def test_a_setting_that_a_run_lacks_is_a_default_or_unknown(
    settings: dict[str, str], known: str | None
) -> None:
    assert setting(settings, "jit") == known


@pytest.mark.parametrize(
    "workload",
    [
        lambda secret: {"sql": secret},
        lambda secret: {"args": [secret]},
        lambda secret: {"query": {"lookup": {"email": secret}}},
        lambda secret: {"page": {"path": f"/books/?author={secret}"}},
    ],
)
def test_the_user_s_own_values_are_not_shown(workload: Callable[[str], dict[str, Any]]) -> None:
    found = differences(
        {"workloads": [workload("ada@example.org")]}, {"workloads": [workload("bob@example.org")]}
    )
    assert len(found) == 1
    assert "ada" not in str(found)
    assert "bob" not in str(found)
