"""The directory of built programs: where it is, and what git sees of it."""

import subprocess
import sys
from pathlib import Path

import pytest

from pgperf.conf import default_build_dir
from pgperf.core.exceptions import LayerUnavailable
from pgperf.install import build_dir
from pgperf.install.launch import C_CLIENT


def test_a_virtual_environment_keeps_its_own_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "prefix", "/srv/site/venv")
    assert default_build_dir() == "/srv/site/venv/pgperf"


def test_without_an_environment_the_user_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    monkeypatch.setenv("HOME", "/home/captain")
    assert default_build_dir() == "/home/captain/.cache/pgperf"


def test_a_user_without_a_home_needs_no_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr(Path, "home", lambda: (_ for _ in ()).throw(RuntimeError("no home")))
    assert default_build_dir() == f"{sys.prefix}/pgperf"


def test_git_ignores_a_directory_of_pgperf(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    (build_dir.make(tmp_path / "below" / "build") / C_CLIENT).touch()
    said = subprocess.run(
        ["git", "-C", str(tmp_path), "status", "--porcelain"], check=True, capture_output=True
    )
    assert said.stdout == b""


def test_a_directory_with_other_files_stays_visible(tmp_path: Path) -> None:
    (tmp_path / "manage.py").touch()
    build_dir.make(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["manage.py"]


def test_a_gitignore_of_the_site_is_kept(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("*.log\n")
    build_dir.make(tmp_path)
    assert (tmp_path / ".gitignore").read_text() == "*.log\n"


def test_a_directory_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(LayerUnavailable, match=r"cannot be made or written: .*; choose another PGPERF"):
        build_dir.make(tmp_path / "file" / "below")
