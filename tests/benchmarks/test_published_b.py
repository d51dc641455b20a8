"""benchmarks.published_b: the table and the answers on the steps of a web site, on made-up runs."""

import json
import sys
from pathlib import Path

import pytest

from benchmarks import published_b
from benchmarks.published import CONFIRMED, QUALIFIED, REFUTED, UNKNOWN
from benchmarks.published_rules import STEP_RULES, at_distance, steps
from example.books.benchmarks import BENCHMARKS
from example.stack.web_steps import PUBLISHED, PUBLISHED_MS, STEPS
from pgperf.catalog.published import PUBLICATIONS
from tests.benchmarks.made_up_runs import NARROW, WIDE, Run, comparison, row, run

CLIENTS = 20
#: Requests/s that confirm every conclusion.
HIS = {
    "web_apache": 4.0, "web_gunicorn": 4.0, "web_nginx": 9.0, "web_nginx_twin": 9.0, "web_conn_kept": 9.0,
    "web_pool": 9.0, "web_pgbouncer": 9.2, "web_tls": 9.0, "web_tls_new": 9.0,
    "web_atomic": 9.0, "web_no_autocommit": 10.5, "web_cluster": 10.5, "web_advised": 11.7,
}  # fmt: skip


def steps_run(per_s: dict[str, float], distances: tuple[float, ...] = (0.0,), width: float = NARROW) -> Run:
    """A run of these steps, with the comparison of each with the one that it builds on."""
    rows, compared = [], []
    for added_ms in distances:
        own = {
            name: row(
                CLIENTS * 1e6 / rate, layer="http", connect="per_operation", clients=CLIENTS,
                route=at_distance(name, added_ms),
            )
            for name, rate in per_s.items()
        }  # fmt: skip
        rows += own.values()
        pairs = [(name, step.builds_on) for name, step in STEPS.items() if step.builds_on]
        pairs += [("web_nginx", "web_apache"), ("web_tls", "web_tls_new")]
        compared += [comparison(own[a], own[b], width) for a, b in pairs if a in own and b in own]
    return run(*rows, comparisons=compared)


def two(gain: float, step: str, base: str, width: float = NARROW) -> Run:
    return steps_run({base: 10.0, step: 10.0 * gain}, width=width)


def word(made: Run, step: str) -> str:
    judged = dict(zip(STEP_RULES, steps(made, 0.0), strict=True))
    return next(judged[rule].word for rule in judged if rule.step == step)


def test_the_published_figures_confirm_all_conclusions() -> None:
    for rule in STEP_RULES:
        assert word(two(rule.published, rule.step, rule.base), rule.step) == CONFIRMED, rule.conclusion


@pytest.mark.parametrize(
    ("gain", "expected"),
    [(1.0, REFUTED), (0.8, REFUTED), (1.05, UNKNOWN), (1.065, QUALIFIED), (1.083, UNKNOWN), (1.12, CONFIRMED),
     (1.25, UNKNOWN), (1.4, QUALIFIED)],
)  # fmt: skip
def test_a_gain_is_about_the_published_one_from_half_to_one_and_a_half_of_it(
    gain: float, expected: str
) -> None:
    assert word(two(gain, "web_pgbouncer", "web_nginx"), "web_pgbouncer") == expected


@pytest.mark.parametrize(("gain", "excluded"), [(1.05, True), (1.083, False), (1.0, False)])
def test_an_open_answer_says_that_it_is_surely_not_confirmed(gain: float, excluded: bool) -> None:
    judged = dict(zip(STEP_RULES, steps(two(gain, "web_pgbouncer", "web_nginx"), 0.0), strict=True))
    evidence = next(judged[rule].evidence for rule in judged if rule.step == "web_pgbouncer")
    assert evidence.endswith("surely not confirmed") is excluded


@pytest.mark.parametrize(
    ("ratio", "expected"),
    [(1.0, CONFIRMED), (0.97, CONFIRMED), (1.05, UNKNOWN), (1.1, REFUTED), (0.9, REFUTED)],
)
def test_no_change_is_less_than_a_win_or_a_loss(ratio: float, expected: str) -> None:
    assert word(two(ratio, "web_tls", "web_tls_new"), "web_tls") == expected


def test_what_is_too_uncertain_or_not_measured_is_unknown() -> None:
    for rule in STEP_RULES:
        assert word(two(rule.published, rule.step, rule.base, width=WIDE), rule.step) == UNKNOWN
        assert word(steps_run({rule.base: 10.0}), rule.step) == UNKNOWN


def test_each_distance_has_its_own_answers() -> None:
    far = steps_run(HIS, (PUBLISHED_MS,))
    assert {each.word for each in steps(far, 0.0)} == {UNKNOWN}
    assert UNKNOWN not in {each.word for each in steps(far, PUBLISHED_MS)}


def test_the_runs_that_answer_have_the_steps_of_the_rules_in_an_order_that_pairs_them() -> None:
    """A run compares each route with the first one, and each step with the one that it builds on."""
    for name, added_ms in (("near", 0.0), ("far", PUBLISHED_MS)):
        words = published_b.WANTED[name][0]
        (routes,) = (word.removeprefix("--routes=").split(",") for word in words if "--routes=" in word)
        assert set(routes) <= set(BENCHMARKS["site-steps"]["routes"])
        for rule in STEP_RULES:
            step, base = at_distance(rule.step, added_ms), at_distance(rule.base, added_ms)
            pairs = {(STEPS[rule.step].builds_on, rule.base), (rule.step, STEPS[rule.base].builds_on)}
            assert {step, base} <= set(routes)
            assert base == routes[0] or any(one == other for one, other in pairs)


def test_each_quick_run_is_of_two_steps_without_a_budget() -> None:
    for _full, quick in published_b.WANTED.values():
        assert "--budget-s=0" in quick
        assert sum(word.count(",") for word in quick if "--routes=" in word) == 1


def test_the_table_has_the_published_figures_and_both_distances() -> None:
    text = published_b.table(steps_run(HIS, (0.0, PUBLISHED_MS)))
    assert text.count("\n") == len(STEPS) + 1
    assert (
        "| nginx before gunicorn | web_gunicorn | 9.0 | 9.0 (8.9 to 9.1) | 2.250 (2.228 to 2.273) |" in text
    )
    assert len({line.count("|") for line in text.splitlines()}) == 1


def test_each_published_figure_is_that_of_the_run_page() -> None:
    figures = {route: each.ops_per_s for each in PUBLICATIONS["site-steps"].figures for route in each.routes}
    shown = {name: float(published_b.PER_S[name].split(";")[0]) for name in figures if name in STEPS}
    assert shown == {name: value for name, value in figures.items() if name in STEPS}


def test_every_rule_is_of_steps_that_are_measured_at_both_distances() -> None:
    for rule in STEP_RULES:
        assert {rule.step, rule.base} <= set(PUBLISHED) <= set(STEPS)


def test_a_kept_run_gives_answers_and_an_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = {name: tmp_path / f"{name}.json" for name in published_b.WANTED}
    runs = [steps_run(HIS, distances) for distances in ((0.0, PUBLISHED_MS), (0.0,), (PUBLISHED_MS,))]
    for path, made in zip(paths.values(), runs, strict=True):
        path.write_text(json.dumps(made))
    words = [word for name, path in paths.items() for word in (f"--{name}", str(path))]
    monkeypatch.setattr(sys, "argv", ["published_b", *words])
    assert published_b.main() == 0
    said = capsys.readouterr().out
    assert "near:" in said
    assert "45 ms farther away:" in said
    assert "the bar holds: all measured, his conclusions are confirmed" in said
    paths["steps"].write_text(json.dumps(steps_run(HIS)))
    assert published_b.main() == 1
    assert "not measured: web_apache+45ms" in capsys.readouterr().out
