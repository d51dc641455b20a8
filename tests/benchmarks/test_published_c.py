"""benchmarks.published_c: the tables of what a pooler saves, on made-up runs."""

import json
import sys
from pathlib import Path

import pytest

from benchmarks import published_c
from benchmarks.published_rules import CLIENTS, LAYER, SCRAM, TRUST
from example.stack.postgres import TRUSTED_CONNECTIONS
from pgperf.catalog.connection_cost import CONNECTION_COST
from pgperf.conf import Settings
from pgperf.core.records import Definition
from pgperf.runner.plan import make_plan
from pgperf.runner.preflight import estimate
from tests.benchmarks.made_up_runs import Run, pooling_run


def trusting() -> Run:
    made = pooling_run(100, 1500, 20_000, 10_000)
    for row in made["variants"]:
        known = row["layer"] == "libpq"
        if row["connect"] == "per_operation":
            row["connection_throughput"] = {
                "including": row["ops_per_s"], "excluding": 12_345.0, "excluding_pgbench": 6789.0 if known else None,
            }  # fmt: skip
    return made


def test_the_tables_have_the_published_figures_and_those_measured() -> None:
    including = published_c.including(trusting(), TRUST)
    assert including.count("\n") == 4
    assert "| direct | 67.5 | 100 (99 to 101) |" in including
    assert "| via PgBouncer | 1,013.0 | 1,500 (1,485 to 1,515) |" in including
    assert "| pooled over direct | 15.0 | 15.00 (14.85 to 15.15) |" in including
    excluding = published_c.excluding(trusting(), TRUST)
    assert excluding.count("\n") == 4
    assert "| direct | 15,423 | 20,000 (19,802 to 20,200) |" in excluding
    assert excluding.count("| 12,345 | 12,345 | 6,789 |") == 2
    assert "| pooled over direct | 0.18 | 0.50 (" in excluding
    columns = {line.count("|") for line in excluding.splitlines()}
    assert len(columns) == 1


def test_what_was_not_measured_is_named_and_never_a_number() -> None:
    assert published_c.missing(trusting(), TRUST) == []
    assert len(published_c.missing(trusting(), SCRAM)) == 4
    text = published_c.including(trusting(), SCRAM) + published_c.excluding(trusting(), SCRAM)
    assert text.count("not measured") == 18
    assert "unknown" in text


@pytest.mark.parametrize(
    "layers",
    [CONNECTION_COST.layers, tuple(published_c.LAYERS), (LAYER,)],
    ids=["benchmark", "full", "quick"],
)
def test_the_runs_fit_into_the_connections_of_the_login_without_a_password(layers: tuple[str, ...]) -> None:
    plan = make_plan(
        Definition(
            "connection-cost", CONNECTION_COST.workloads, layers, (TRUST.direct, TRUST.pooled),
            clients=CONNECTION_COST.clients, connection_modes=CONNECTION_COST.connection_modes,
            diagnostic_ms=CONNECTION_COST.diagnostic_ms,
        )
    )  # fmt: skip
    kept_by_the_pooler = 3 * CLIENTS
    free = TRUSTED_CONNECTIONS - kept_by_the_pooler
    assert estimate(plan).connections <= Settings().CONNECTION_SHARE * free


def test_the_runs_have_all_layers_of_the_tables() -> None:
    for full, _quick in published_c.WANTED.values():
        (layers,) = (word.removeprefix("--layers=") for word in full if word.startswith("--layers="))
        assert layers.split(",") == list(published_c.LAYERS)


def write(path: Path, run: Run) -> str:
    path.write_text(json.dumps(run))
    return str(path)


def test_kept_runs_give_answers_and_an_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    scram = pooling_run(50, 55, 20_000, 10_000, routes=("tcp", "pgbouncer"))
    files = [write(tmp_path / "trust", trusting()), write(tmp_path / "scram", scram)]
    monkeypatch.setattr(sys, "argv", ["published_c", "--trust", files[0], "--scram", files[1]])
    assert published_c.main() == 0
    assert "the bar holds: all measured, his conclusions are confirmed, confirmed, qualified, confirmed" in (
        capsys.readouterr().out
    )
    monkeypatch.setattr(sys, "argv", ["published_c", "--trust", files[0], "--scram", files[0]])
    assert published_c.main() == 1
    assert "does NOT hold: not measured: pgbench_one_thread · tcp · per_operation" in capsys.readouterr().out
    wide = pooling_run(50, 55, 20_000, 10_000, routes=("tcp", "pgbouncer"), width=3.0)
    monkeypatch.setattr(sys, "argv", ["x", "--trust", files[0], "--scram", write(tmp_path / "wide", wide)])
    assert published_c.main() == 1
    assert "does NOT hold: all measured" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("content", "said"), [("{}", "this is no run"), ("[]", "this is no run"), ("{", "pgperf run --json")]
)
def test_a_file_without_a_run_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str, said: str
) -> None:
    path = tmp_path / "bad.json"
    path.write_text(content)
    monkeypatch.setattr(sys, "argv", ["x", "--trust", str(path), "--scram", str(path)])
    with pytest.raises(SystemExit, match=f"bad.json.*{said}"):
        published_c.main()


@pytest.mark.parametrize("words", [["--trust", "a"], ["--trust", "a", "--scram", "b", "--keep", "c"]])
def test_options_that_contradict_each_other_are_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["x", *words])
    with pytest.raises(SystemExit, match="2"):
        published_c.main()
    assert "--trust" in capsys.readouterr().err
