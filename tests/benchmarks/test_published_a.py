"""The rules by which the conclusions of 2010 are judged, on runs that nobody measured."""

from typing import Any

import pytest

from benchmarks import published_a
from benchmarks.published_a import CONFIRMED, QUALIFIED, REFUTED, UNKNOWN, findings, missing

LAYERS = ("libpq", "django_orm_psycopg2")
US = {"libpq": 60.0, "django_orm_psycopg2": 210.0}
ROUTE_US = {"socket": 0.0, "tcp": 10.0, "pgbouncer": 18.0, "distance_05ms": 560.0}


def row(layer: str, route: str, clients: int = 1, **changes: Any) -> dict[str, Any]:
    label = f"{layer} · {route}" + (f" · {clients} clients" if clients > 1 else "")
    us = US[layer] + ROUTE_US[route]
    share = {"clients": 0.3, "server": 0.2, "idle": 0.5, "steal": 0.0}
    return {
        "label": label, "layer": layer, "route": route, "clients": clients, "copy": 0, "us_per_op": us,
        "ops_per_s": clients * 1e6 / us, "cpu_us_per_op": {"client_user": 20.0, "client_sys": 5.0},
        "cold_us": {"startup": 300_000.0, "connect": 4000.0, "first": 900.0}, "top": None,
        "books": {"share": share, "busiest": {"pooler": 0.95 if route == "pgbouncer" and clients > 4 else 0.2}},
        "verdict": {"word": "latency" if layer == "libpq" else "client_cpu"},
        **changes,
    }  # fmt: skip


def comparison(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    ratio = one["us_per_op"] / other["us_per_op"]
    return {
        "variant": one["label"], "baseline": other["label"],
        "ratio": ratio, "low": 0.99 * ratio, "high": 1.01 * ratio,
    }  # fmt: skip


def single(*routes: str) -> dict[str, Any]:
    rows = {(la, ro): row(la, ro) for ro in routes for la in LAYERS}
    over = [comparison(rows["django_orm_psycopg2", ro], rows["libpq", ro]) for ro in routes]
    over += [comparison(rows[la, ro], rows[la, "tcp"]) for ro in routes if ro != "tcp" for la in LAYERS]
    return {"variants": list(rows.values()), "comparisons": over}


def several(**changes: Any) -> dict[str, Any]:
    cases = [(published_a.LAYERS[kind][0], route, n) for _, kind, route, n, *_ in published_a.CASES]
    return {"variants": [row(*case, **changes) for case in cases], "comparisons": []}


ALL = ("tcp", "pgbouncer", "socket", "distance_05ms")


def words(one: dict[str, Any], many: dict[str, Any]) -> list[str]:
    return [finding.word for finding in findings(one, many)]


def test_what_he_saw_is_confirmed() -> None:
    assert words(single(*ALL), several()) == [CONFIRMED, CONFIRMED, CONFIRMED, REFUTED, CONFIRMED]


def test_the_orm_is_no_bottleneck_where_no_verdict_says_so() -> None:
    run = single(*ALL)
    for one in run["variants"]:
        one["verdict"] = {"word": "server_cpu"}
    assert words(run, several())[0] == REFUTED
    run["variants"][1]["verdict"] = {"word": "client_cpu"}
    assert words(run, several())[0] == QUALIFIED


@pytest.mark.parametrize("word", ["disturbed", "unknown", None])
def test_what_was_disturbed_answers_nothing(word: str | None) -> None:
    one, many = single(*ALL), several(verdict={"word": word})
    for each in one["variants"]:
        each["verdict"] = {"word": word}
    found = words(one, many)
    assert (found[0], found[3], found[4]) == (UNKNOWN, UNKNOWN, UNKNOWN)


def test_what_is_not_certain_answers_nothing() -> None:
    one = single(*ALL)
    for each in one["comparisons"]:
        each |= {"low": 0.01 * each["ratio"], "high": 9 * each["ratio"]}
    found = words(one, several())
    assert (found[1], found[2]) == (UNKNOWN, UNKNOWN)


def test_local_and_far_alike_refute_the_network() -> None:
    one = single(*ALL)
    for each in one["comparisons"]:
        if "socket" in each["variant"] or "distance" in each["variant"]:
            turned = 1.1 if "socket" in each["variant"] else 0.9
            each |= {"ratio": turned, "low": turned - 0.01, "high": turned + 0.01}
    assert words(one, several())[2] == REFUTED


def test_without_both_hosts_nothing_is_said_of_the_pooler() -> None:
    assert words(single("tcp", "socket"), several())[1] == UNKNOWN


def test_a_pooler_that_is_never_busy_does_not_saturate() -> None:
    assert words(single(*ALL), several(books=None))[1] == QUALIFIED


@pytest.mark.parametrize(
    ("steal", "idle", "word"),
    [(0.02, 0.5, CONFIRMED), (0.019, 0.5, REFUTED), (0.0, 0.09, QUALIFIED), (None, 0.5, UNKNOWN)],
)
def test_other_ceilings(steal: float | None, idle: float, word: str) -> None:
    books = {"share": {"steal": steal, "idle": idle}, "busiest": {}}
    assert words(single(*ALL), several(books=books))[3] == word


def test_without_a_distance_the_local_socket_still_answers() -> None:
    found = findings(single("tcp", "pgbouncer", "socket"), several())
    assert (found[2].word, found[4].word) == (CONFIRMED, QUALIFIED)
    assert "distance" not in found[2].evidence


def test_what_was_not_measured_is_unknown_and_missing() -> None:
    one = single("tcp")
    many: dict[str, Any] = {"variants": [], "comparisons": []}
    assert words(one, many) == [UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, QUALIFIED]
    assert len(missing(one, many, published_a.CASES)) == 4 + len(published_a.CASES)
    assert missing(single(*ALL), several(), published_a.CASES) == []


def test_the_tables_have_a_line_for_each_of_his() -> None:
    text = published_a._table(single(*ALL))
    assert text.count("\n") == 1 + len(published_a.CONFIGURATIONS)
    assert "| C + libpq on the database host | 1.758 | 0.600 |" in text
    assert "304.90" in published_a._phases(single(*ALL))
    assert published_a._cases(several(), published_a.CASES).count("unknown |") == 0
