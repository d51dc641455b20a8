"""Which pgbench the layer runs, and why none can."""

from pathlib import Path

import pytest

from pgperf.install import launch

LAYERS = ("pgbench", "pgbench_one_thread")


def program(path: Path, says: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho '{says}'\n")
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only directory on PATH beside the shell's, which has no pgbench."""
    directory = tmp_path / "path"
    directory.mkdir()
    monkeypatch.setenv("PATH", str(directory))
    return directory


@pytest.mark.parametrize("layer", LAYERS)
def test_without_pgbench_it_says_how_to_get_it(path: Path, layer: str) -> None:
    reason = launch.unavailable(layer, "simple", "")
    assert "install" in reason
    assert "PGPERF['PGBENCH']" in reason


def test_the_setting_comes_first(path: Path, tmp_path: Path) -> None:
    program(path / "pgbench", "pgbench (PostgreSQL) 17.1")
    named = program(tmp_path / "own" / "pgbench", "pgbench (PostgreSQL) 18.6")
    assert launch.command("pgbench", "", {"pgbench": named})[-1] == named
    assert launch.command("pgbench", "", {"pgbench": ""})[-1] == str(path / "pgbench")


def test_pg_config_comes_last(path: Path, tmp_path: Path) -> None:
    found = program(tmp_path / "bin" / "pgbench", "pgbench (PostgreSQL) 18.6")
    pg_config = program(tmp_path / "pg_config", str(tmp_path / "bin"))
    assert launch.command("pgbench", "", {"pg_config": pg_config})[-1] == found
    assert launch.unavailable("pgbench", "prepared", "", {"pg_config": pg_config}) == ""


def test_a_setting_that_names_no_program_is_named(path: Path) -> None:
    assert "/no/pgbench" in launch.unavailable("pgbench", "simple", "", {"pgbench": "/no/pgbench"})


@pytest.mark.parametrize(
    ("says", "reason"),
    [("pgbench (PostgreSQL) 13.4", "of version 13.4"), ("no version", "does not say its version")],
)
def test_an_old_pgbench_is_left_out(path: Path, tmp_path: Path, says: str, reason: str) -> None:
    named = program(tmp_path / "pgbench", says)
    assert reason in launch.unavailable("pgbench", "simple", "", {"pgbench": named})
