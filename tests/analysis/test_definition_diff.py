"""In what two runs differ besides their figures."""

from pgperf.analysis.definition_diff import Difference, differences

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


def test_the_load_of_the_moment_and_the_seed_differ_by_nature() -> None:
    after = {**BEFORE, "machine": {"kernel": "6.1", "load_average": [9, 9, 9]}, "seed": 7}
    assert differences({**BEFORE, "seed": 3}, after) == []


def test_values_of_the_user_are_not_told() -> None:
    found = differences(
        {"workloads": [{"args": ["CANARY"]}]}, {"workloads": [{"args": ["other"], "sql": "CANARY"}]}
    )
    assert [difference.what for difference in found] == ["workloads.1.args", "workloads.1.sql"]
    assert "CANARY" not in str(found)


def test_long_values_are_cut() -> None:
    (found,) = differences({"x": "a" * 500}, {"x": "b" * 500})
    assert len(found.before) == len(found.after) == 120
