"""benchmarks.cpu_closure: the processes that its total covers, and a group that cannot be removed."""

from pathlib import Path

import pytest

from benchmarks import cpu_closure


def group(directory: Path, *pids: int) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "cgroup.procs").write_text("".join(f"{pid}\n" for pid in pids))
    return directory


def test_a_group_s_total_covers_the_processes_of_the_groups_below(tmp_path: Path) -> None:
    group(tmp_path, 1, 2)
    group(tmp_path / "server", 3)
    group(tmp_path / "server" / "workers", 4)
    assert cpu_closure._members(tmp_path) == {1, 2, 3, 4}


def test_groups_are_removed_from_below(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    below = group(group(tmp_path / "own") / "server")
    removed: list[Path] = []
    monkeypatch.setattr(Path, "rmdir", lambda group: removed.append(group))
    cpu_closure._remove(tmp_path / "own")
    assert removed == [below, tmp_path / "own"]


def test_a_group_that_stays_does_not_cost_the_verdict(tmp_path: Path) -> None:
    cpu_closure._remove(group(tmp_path / "own"))
    assert (tmp_path / "own").exists()
