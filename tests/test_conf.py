"""The settings as their readers get them."""

from pathlib import Path
from typing import Any

import pytest

from pgperf.conf import get_settings


def test_relative_paths_are_those_of_the_directory_of_the_site(
    settings: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Clients start in another directory."""
    monkeypatch.chdir(tmp_path)
    settings.PGPERF = {
        "BUILD_DIR": "build", "PGBENCH": "bin/pgbench", "INTERPRETERS": {"asyncpg": "./venv/bin/python"},
    }  # fmt: skip
    found = get_settings()
    assert Path(found.BUILD_DIR) == tmp_path / "build"
    assert found.programs["pgbench"] == str(tmp_path / "bin" / "pgbench")
    assert found.programs["asyncpg"] == str(tmp_path / "venv" / "bin" / "python")


def test_names_without_a_slash_stay_names_on_path(settings: Any) -> None:
    settings.PGPERF = {"PGBENCH": "pgbench-18", "INTERPRETERS": {"asyncpg": "python3.12"}}
    found = get_settings()
    assert found.programs["pgbench"] == "pgbench-18"
    assert found.programs["asyncpg"] == "python3.12"


def test_a_program_that_is_not_named_stays_empty(settings: Any) -> None:
    settings.PGPERF = {"PGBENCH": ""}
    assert get_settings().PGBENCH == ""
