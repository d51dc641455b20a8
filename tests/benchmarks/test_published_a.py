"""benchmarks.published_a: the rules for the conclusions of 2010, on made-up runs."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import published_a
from benchmarks.published import CONFIRMED, QUALIFIED, REFUSAL, REFUTED, UNKNOWN
from benchmarks.published_a import judgements, missing

LAYERS = ("libpq", "django_orm_psycopg2")
US = {"libpq": 60.0, "django_orm_psycopg2": 210.0}
ROUTE_US = {"socket": 0.0, "tcp": 70.0, "pgbouncer": 84.0, "distance_05ms": 620.0}


def row(layer: str, route: str, clients: int = 1, **changes: Any) -> dict[str, Any]:
    label = f"{layer} · {route}" + (f" · {clients} clients" if clients > 1 else "")
    us = US[layer] + ROUTE_US[route]
    share = {"clients": 0.3, "server": 0.2, "idle": 0.5, "steal": 0.0}
    return {
        "label": label, "layer": layer, "route": route, "clients": clients, "control": 0, "us_per_op": us,
        "us_per_op_low": 0.99 * us, "us_per_op_high": 1.01 * us, "ops_per_s": clients * 1e6 / us,
        "cpu_us_per_op": {"client_user": 20.0, "client_sys": 5.0},
        "cold_us": {"startup": 300_000.0, "connect": 4000.0, "first": 900.0}, "top": None,
        "cpu_account": {"share": share, "busiest": {"pooler": 0.95 if route == "pgbouncer" and clients > 4 else 0.2}},
        "verdict": verdict("latency" if layer == "libpq" else "client_cpu"),
        **changes,
    }  # fmt: skip


def verdict(word: str | None, *, withheld: bool | None = False) -> dict[str, Any]:
    why = "the clients' CPUs were 96 % busy" if withheld else ""
    checks = {"capacity": {"withheld": withheld, "why": why}}
    return {"word": word, "checks": checks, "grade": {"word": "good", "share": 0.0}}


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


def with_ratio(run: dict[str, Any], variant: str, baseline: str, ratio: float) -> dict[str, Any]:
    """The run with another ratio of these two variants."""
    for each in run["comparisons"]:
        if (each["variant"], each["baseline"]) == (variant, baseline):
            each |= {"ratio": ratio, "low": 0.99 * ratio, "high": 1.01 * ratio}
    return run


def locally(django: float, libpq: float) -> dict[str, Any]:
    """A run with these ratios of times, socket over TCP."""
    run = with_ratio(single(*ALL), "django_orm_psycopg2 · socket", "django_orm_psycopg2 · tcp", django)
    return with_ratio(run, "libpq · socket", "libpq · tcp", libpq)


def pooled(ratio: float) -> dict[str, Any]:
    """A run with this ratio of Django's times, with PgBouncer over without."""
    return with_ratio(single(*ALL), "django_orm_psycopg2 · pgbouncer", "django_orm_psycopg2 · tcp", ratio)


def busy(**share: float | None) -> dict[str, Any]:
    return {"share": {"steal": 0.0, "idle": 0.5}, "busiest": share}


def words(one: dict[str, Any], many: dict[str, Any]) -> list[str]:
    return [judgement.word for judgement in judgements(one, many)]


def test_runs_like_his_confirm_his_conclusions() -> None:
    assert words(single(*ALL), several()) == [CONFIRMED, CONFIRMED, CONFIRMED, REFUTED, CONFIRMED]


def test_the_orm_conclusion_depends_on_the_verdicts() -> None:
    run = single(*ALL)
    for one in run["variants"]:
        one["verdict"] = verdict("server_cpu")
    assert words(run, several())[0] == REFUTED
    run["variants"][1]["verdict"] = verdict("client_cpu")
    assert words(run, several())[0] == QUALIFIED


@pytest.mark.parametrize("word", ["disturbed", "unknown", None])
def test_a_disturbed_or_unknown_verdict_leaves_what_intervals_settle(word: str | None) -> None:
    one, many = single(*ALL), several(verdict=verdict(word))
    for each in one["variants"]:
        each["verdict"] = verdict(word)
    found = words(one, many)
    assert (found[0], found[3], found[4]) == (CONFIRMED, UNKNOWN, UNKNOWN)


def graded(word: str, share: float) -> dict[str, Any]:
    steal = "the hypervisor took 12 % of the host's CPU time (steal)"
    return {"word": word, "grade": {"word": "poor", "share": share, "evidence": steal}}


@pytest.mark.parametrize(
    ("others", "share", "word"),
    [
        ("client_cpu", 0.1, CONFIRMED), ("disturbed", 0.1, CONFIRMED), ("server_cpu", 0.1, QUALIFIED),
        ("disturbed", 0.5, UNKNOWN), ("client_cpu", 0.5, QUALIFIED), ("disturbed", 1.0, UNKNOWN),
    ],
)  # fmt: skip
def test_the_orm_conclusion_takes_off_what_disturbances_may_have_added(
    others: str, share: float, word: str
) -> None:
    """Over TCP the ORM takes 2.15 times as long as libpq: half of its time may be the machine's."""
    one = single(*ALL)
    for each in one["variants"]:
        if each["label"] == "django_orm_psycopg2 · tcp":
            each["verdict"] = graded(others, share)
    found = judgements(one, several())[0]
    assert found.word == word
    assert (
        f"disturbances had at most {100 * share:.1f} % of a time (django_orm_psycopg2 · tcp: the"
        in found.evidence
    )
    assert "(steal))" in found.evidence


def test_the_orm_conclusion_is_not_confirmed_by_a_ratio_that_may_be_small() -> None:
    one = disturbed()
    run = with_ratio(one, "django_orm_psycopg2 · tcp", "libpq · tcp", 1.5)
    assert words(run, several())[0] == QUALIFIED
    assert words(with_ratio(run, "django_orm_psycopg2 · tcp", "libpq · tcp", 1.66), several())[0] == UNKNOWN


def disturbed() -> dict[str, Any]:
    """A run whose verdicts are disturbed, by nothing that is known to have lengthened an operation."""
    run = single(*ALL)
    for each in run["variants"]:
        each["verdict"] = verdict("disturbed")
    return run


def with_small_ratios(run: dict[str, Any]) -> dict[str, Any]:
    for route in published_a.PHASE_ROUTES:
        with_ratio(run, f"django_orm_psycopg2 · {route}", f"libpq · {route}", 1.2)
    return run


def test_ratios_that_are_surely_small_refute_the_orm_conclusion_where_no_verdict_is_the_client() -> None:
    assert words(with_small_ratios(disturbed()), several())[0] == REFUTED
    run = with_small_ratios(disturbed())
    run["variants"][1]["verdict"] = verdict("client_cpu")
    assert words(run, several())[0] == QUALIFIED


@pytest.mark.parametrize("word", ["client_cpu", "disturbed"])
def test_the_orm_conclusion_is_unknown_with_an_unknown_grade(word: str) -> None:
    one = single(*ALL)
    steal = {"source": "steal", "us": 14.0}
    grade = {"word": "unknown", "share": None, "disturbances": [steal], "evidence": "no run queue"}
    for each in one["variants"]:
        if each["label"] == "django_orm_psycopg2 · tcp":
            each["verdict"] = {**verdict(word), "grade": grade}
    found = judgements(one, several())[0]
    assert found.word == UNKNOWN
    assert "disturbances had at most 5.0 % of a time (django_orm_psycopg2 · tcp: no run" in found.evidence
    assert found.evidence.endswith("; not all disturbances are known (django_orm_psycopg2 · tcp)")


def test_a_refused_run_leaves_its_conclusions_unknown_with_the_reason() -> None:
    why = "time budget: 6 blocks take at least 80 s"
    no_rows: dict[str, Any] = {"variants": [], "comparisons": [], REFUSAL: why}
    found = judgements(single(*ALL), no_rows)
    assert [each.word for each in found] == [CONFIRMED, UNKNOWN, CONFIRMED, UNKNOWN, UNKNOWN]
    assert found[3].evidence == "a run was refused: time budget: 6 blocks take at least 80 s"
    assert words(no_rows, several()) == [UNKNOWN, UNKNOWN, UNKNOWN, REFUTED, UNKNOWN]


def judged(loaded: dict[str, Any], folder: Path, monkeypatch: pytest.MonkeyPatch, *more: str) -> int:
    """The exit code for these single runs beside quiet ones that confirm what they can."""
    for name, run in {"single": single(*ALL), "several": several()}.items():
        kept = {**run, "conditions": {"arguments": [*published_a.WANTED[name][0]]}}
        (folder / f"published-a-{name}.json").write_text(json.dumps(kept))
    (folder / "loaded.json").write_text(json.dumps(loaded))
    files = ["--single", str(folder / "loaded.json"), "--several", str(folder / "published-a-several.json")]
    monkeypatch.setattr("sys.argv", ["published_a", *files, "--quiet-answers", str(folder), *more])
    return published_a.main()


def test_beside_load_the_answers_are_those_of_the_quiet_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert judged(single(*ALL), tmp_path, monkeypatch) == 0
    assert capsys.readouterr().out.count("| the same |") == 5
    assert judged(pooled(1.13), tmp_path, monkeypatch) == 1
    said = capsys.readouterr().out
    assert "| PgBouncer costs about 5 % and saturates at scale | confirmed | qualified | **no** |" in said
    assert "not by the machine: PgBouncer costs about 5 % and saturates at scale: qualified, quiet" in said


@pytest.mark.parametrize(("share", "code"), [(0.06, 0), (0.03, 1)])
def test_another_answer_must_be_one_that_the_machine_can_have_changed(
    share: float,
    code: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """From 1.12 (the low end of 1.13), 1.08 is reached by a share of 3.5 %."""
    loaded = pooled(1.13)
    for each in loaded["variants"]:
        if each["label"] == "django_orm_psycopg2 · pgbouncer":
            each["verdict"] = graded("client_cpu", share)
    assert judged(loaded, tmp_path, monkeypatch) == code
    said = capsys.readouterr().out
    assert f"disturbances had at most {100 * share:.1f} % of a time" in said
    assert ("| by the machine: without its part, time of django_orm_psycopg2" in said) != bool(code)


def test_answers_are_compared_with_whole_quiet_runs_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SystemExit, match="leave out --quick"):
        judged(single(*ALL), tmp_path, monkeypatch, "--quick")
    (tmp_path / "quick").mkdir()
    for name, run in {"single": single(*ALL), "several": several()}.items():
        kept = {**run, "conditions": {"arguments": [*published_a.WANTED[name][1]]}}
        (tmp_path / "quick" / f"published-a-{name}.json").write_text(json.dumps(kept))
    monkeypatch.setattr("sys.argv", ["published_a", "--quiet-answers", str(tmp_path / "quick")])
    with pytest.raises(SystemExit, match="this is no run of `pgperf run published-a` that --keep wrote"):
        published_a.main()


def test_every_conclusion_has_figures_that_decide_it() -> None:
    found = published_a.deciding(single(*ALL), several())
    assert [len(figures) for figures in found] == [3, 2, 4, 2, 2]
    nobody: dict[str, Any] = {"variants": [], "comparisons": []}
    assert published_a.deciding(nobody, nobody) == [[]] * 5


def test_the_least_idle_share_is_that_of_rows_with_a_verdict() -> None:
    """As in the rule of the conclusion."""
    many = several()
    share = {"idle": 0.01, "other": 0.5, "steal": 0.0}
    many["variants"][0] |= {"verdict": verdict("disturbed"), "cpu_account": {"share": share, "busiest": {}}}
    (idle,) = [
        each for each in published_a.deciding(single(*ALL), many)[3] if each.what == "least idle share"
    ]
    assert (idle.low, idle.disturbed) == (0.5, 0.0)


def test_a_variant_is_not_compared_with_itself() -> None:
    """Over one route alone, each variant has the shortest time of its layer."""
    nobody: dict[str, Any] = {"variants": [], "comparisons": []}
    found = judgements(single("tcp"), nobody)[4]
    assert found.word == UNKNOWN
    assert found.evidence == "no layer has two undisturbed variants to compare"
    assert words(single("tcp", "distance_05ms"), nobody)[4] == CONFIRMED


def test_a_wide_interval_gives_unknown() -> None:
    one = single(*ALL)
    for each in one["comparisons"]:
        each |= {"low": 0.01 * each["ratio"], "high": 9 * each["ratio"]}
    found = words(one, several())
    assert (found[1], found[2]) == (UNKNOWN, UNKNOWN)


def test_a_slower_socket_and_a_faster_delayed_route_refute_the_network() -> None:
    one = single(*ALL)
    for each in one["comparisons"]:
        if "socket" in each["variant"] or "distance" in each["variant"]:
            turned = 1.1 if "socket" in each["variant"] else 0.9
            each |= {"ratio": turned, "low": turned - 0.01, "high": turned + 0.01}
    assert words(one, several())[2] == REFUTED


def test_without_a_pooled_route_the_pooler_conclusion_is_unknown() -> None:
    assert words(single("tcp", "socket"), several())[1] == UNKNOWN


@pytest.mark.parametrize(
    ("ratio", "pooler", "word"),
    [
        (1.05, 0.9, CONFIRMED), (1.05, 0.89, QUALIFIED), (1.13, 0.9, QUALIFIED), (1.13, 0.53, REFUTED),
        (1.13, None, QUALIFIED), (1.05, None, QUALIFIED), (1.13, 0.0, QUALIFIED),
    ],
)  # fmt: skip
def test_the_pooler_saturates_from_90_percent_of_a_cpu(ratio: float, pooler: float | None, word: str) -> None:
    found = judgements(pooled(ratio), several(cpu_account=busy(pooler=pooler)))[1]
    assert found.word == word
    assert ("is not known" in found.evidence) == (not pooler)


@pytest.mark.parametrize(
    ("withheld", "word", "said"),
    [
        (True, QUALIFIED, "at most 53 % of one CPU, but at libpq · pgbouncer · 8 clients that CPU is also"
         " the clients', which left it no more (the clients' CPUs were 96 % busy)"),
        (None, QUALIFIED, "at most 53 % of one CPU, but at libpq · pgbouncer · 8 clients how busy the clients'"),
        (False, REFUTED, "90 % of one CPU in no case (at most 53 % anywhere)"),
    ],
)  # fmt: skip
def test_a_pooler_without_enough_cpu_time_is_no_refutation(
    withheld: bool | None, word: str, said: str
) -> None:
    run = several(cpu_account=busy(pooler=0.0))
    rows = {each["label"]: each for each in run["variants"]}
    rows["libpq · pgbouncer · 8 clients"] |= {
        "cpu_account": busy(pooler=0.53), "verdict": verdict("server_cpu", withheld=withheld),
    }  # fmt: skip
    rows["libpq · tcp · 8 clients"]["verdict"] = verdict("server_cpu", withheld=True)
    found = judgements(pooled(1.13), run)[1]
    assert found.word == word
    assert said in found.evidence


def test_a_pooler_with_little_work_needs_no_free_cpu() -> None:
    run = several(cpu_account=busy(pooler=0.5))
    rows = {each["label"]: each for each in run["variants"]}
    mostly_idle = rows["django_orm_psycopg2 · pgbouncer · 8 clients"]
    mostly_idle |= {"cpu_account": busy(pooler=0.24), "verdict": verdict("client_cpu", withheld=True)}
    assert words(pooled(1.13), run)[1] == REFUTED
    mostly_idle["cpu_account"] = busy(pooler=0.25)
    assert words(pooled(1.13), run)[1] == QUALIFIED


@pytest.mark.parametrize(
    ("django", "libpq", "word"),
    [
        (0.8, 0.5, CONFIRMED), (0.7, 0.4, CONFIRMED), (0.94, 0.83, QUALIFIED), (0.81, 0.5, QUALIFIED),
        (0.8, 0.51, QUALIFIED),
    ],
)  # fmt: skip
def test_the_network_conclusion_by_ratios_of_local_times(django: float, libpq: float, word: str) -> None:
    found = judgements(locally(django, libpq), several())[2]
    assert found.word == word
    assert f"Django {django:.2f} (" in found.evidence
    assert f"C {libpq:.2f} (" in found.evidence
    assert "by his table Django 0.93, C 0.46" in found.evidence


@pytest.mark.parametrize(("ratio", "word"), [(1.7, CONFIRMED), (1.6, QUALIFIED), (1.0, QUALIFIED)])
def test_the_orm_conclusion_by_the_ratio_over_libpq(ratio: float, word: str) -> None:
    run = with_ratio(single(*ALL), "django_orm_psycopg2 · tcp", "libpq · tcp", ratio)
    found = judgements(run, several())[0]
    assert found.word == word
    assert f"{100 * (1 - 1 / ratio):.0f} %" in found.evidence
    assert "by his table 56 %, 63 %, 82 %" in found.evidence


@pytest.mark.parametrize(
    ("steal", "idle", "word"),
    [(0.02, 0.5, CONFIRMED), (0.019, 0.5, REFUTED), (0.0, 0.09, QUALIFIED), (None, 0.5, UNKNOWN)],
)
def test_the_conclusion_on_other_ceilings_by_steal_and_idle_time(
    steal: float | None, idle: float, word: str
) -> None:
    account = {"share": {"steal": steal, "idle": idle}, "busiest": {}}
    assert words(single(*ALL), several(cpu_account=account))[3] == word


def test_without_a_delayed_route_the_socket_decides() -> None:
    found = judgements(single("tcp", "pgbouncer", "socket"), several())
    assert found[2].word == CONFIRMED
    assert "distance" not in found[2].evidence


def test_what_was_not_measured_is_unknown_and_missing() -> None:
    one = single("tcp")
    many: dict[str, Any] = {"variants": [], "comparisons": []}
    assert words(one, many) == [UNKNOWN] * 5
    assert len(missing(one, many, published_a.CASES)) == 4 + len(published_a.CASES)
    assert missing(single(*ALL), several(), published_a.CASES) == []


def test_each_table_has_a_line_for_each_published_line() -> None:
    text = published_a._table(single(*ALL))
    assert text.count("\n") == 1 + len(published_a.CONFIGURATIONS)
    assert "| C + libpq on the database host | 1.758 | 0.600 |" in text
    assert "304.90" in published_a._phases(single(*ALL))
    assert published_a._cases(several(), published_a.CASES).count("unknown |") == 0
