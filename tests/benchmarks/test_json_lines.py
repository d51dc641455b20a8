"""benchmarks.json_lines: a campaign's file is read again, also after a kill."""

import json
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from benchmarks import json_lines


def test_runs_are_read_as_they_were_appended(tmp_path: Path) -> None:
    out = tmp_path / "runs.jsonl"
    assert json_lines.read(None) == json_lines.read(out) == []
    for seed in (1, 2):
        json_lines.append(out, {"seed": seed})
    json_lines.append(None, {"seed": 3})
    assert json_lines.read(out) == [{"seed": 1}, {"seed": 2}]


def test_half_a_line_of_a_killed_script_is_dropped(tmp_path: Path) -> None:
    out = tmp_path / "runs.jsonl"
    out.write_text('{"seed": 1}\n{"se')
    assert json_lines.read(out) == [{"seed": 1}]
    json_lines.append(out, {"seed": 2})
    assert json_lines.read(out) == [{"seed": 1}, {"seed": 2}]


def test_lines_of_other_commits_count_and_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "runs.jsonl"
    out.write_text('{"seed": 1}\n')
    for seed, name in ((2, "abc"), (3, "def")):
        monkeypatch.setattr(json_lines, "commit", lambda name=name: name)
        json_lines.append(out, {"seed": seed})
    assert [line["seed"] for line in json_lines.read(out)] == [1, 2, 3]
    said = capsys.readouterr().err
    assert "lines of other commits than def: 1 of unknown, 1 of abc" in said
    monkeypatch.setattr(json_lines, "commit", lambda: "abc")
    out.write_text('{"seed": 2, "commit": "abc"}\n')
    assert json_lines.read(out) == [{"seed": 2}]
    assert capsys.readouterr().err == ""


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A repository with this module and a file of data; the commit has not been asked yet."""
    script, data = tmp_path / "benchmarks" / "json_lines.py", tmp_path / "docs/campaigns/data/runs.jsonl"
    for path in (script, data):
        path.parent.mkdir(parents=True)
        path.touch()
    identity = ("-c", "user.name=Test", "-c", "user.email=test@example.com")
    for words in (("init", "-q"), ("add", "."), (*identity, "commit", "-qm", "Begin")):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    monkeypatch.setattr(json_lines, "__file__", str(script))
    json_lines.commit.cache_clear()
    yield tmp_path
    json_lines.commit.cache_clear()


def commits(out: Path) -> list[str]:
    return [json.loads(line)["commit"] for line in out.read_text().splitlines()]


def test_a_growing_file_of_data_does_not_make_the_checkout_dirty(checkout: Path) -> None:
    out = checkout / "docs/campaigns/data/runs.jsonl"
    for seed in (1, 2):
        json_lines.read(out)
        json_lines.append(out, {"seed": seed})
        json_lines.commit.cache_clear()
    assert commits(out) == [json_lines.commit()] * 2
    assert json_lines.commit()
    assert not json_lines.commit().endswith("-dirty")


def test_the_commit_is_that_of_the_start(checkout: Path, tmp_path: Path) -> None:
    out = tmp_path / "runs.jsonl"
    json_lines.read(out)
    (checkout / "benchmarks/json_lines.py").write_text("changed = True\n")
    json_lines.append(out, {"seed": 1})
    json_lines.commit.cache_clear()
    json_lines.append(out, {"seed": 2})
    first, second = commits(out)
    assert second == f"{first}-dirty"


class Runs:
    """Measures units; `ends` counts how often that ended."""

    def __init__(self) -> None:
        self.measured: list[json_lines.Unit] = []
        self.ends = 0

    def __call__(self, units: Sequence[json_lines.Unit]) -> json_lines.Measuring:
        try:
            for unit in units:
                if unit["seed"] == 13:
                    raise KeyboardInterrupt
                self.measured.append(unit)
                yield {"us": (1.5, 10 * unit["seed"])}
        finally:
            self.ends += 1


def units(*seeds: int, rivals: int = 0) -> list[json_lines.Unit]:
    return [{"rivals": rivals, "seed": seed} for seed in seeds]


def test_only_the_units_that_the_file_lacks_are_measured(tmp_path: Path) -> None:
    out, runs = tmp_path / "runs.jsonl", Runs()
    first = [*json_lines.resumed(out, units(2), runs)]
    assert first == json_lines.read(out) == [{"rivals": 0, "seed": 2, "us": [1.5, 20]}]
    again = [*json_lines.resumed(out, units(1, 2, 3), runs)]
    assert [line["seed"] for line in again] == [1, 2, 3]
    assert runs.measured == units(2, 1, 3)
    assert runs.ends == 2


def test_a_file_with_all_units_starts_nothing(tmp_path: Path) -> None:
    out, runs = tmp_path / "runs.jsonl", Runs()
    lines = [*json_lines.resumed(out, units(1, 2), runs)]
    assert [*json_lines.resumed(out, units(1, 2), runs)] == lines
    assert runs.ends == 1


def test_units_of_other_conditions_are_others(tmp_path: Path) -> None:
    out, runs = tmp_path / "runs.jsonl", Runs()
    for rivals in (0, 2, 0):
        assert [line["rivals"] for line in json_lines.resumed(out, units(1, rivals=rivals), runs)] == [rivals]
    assert runs.measured == [*units(1), *units(1, rivals=2)]


def test_an_interrupted_unit_leaves_nothing(tmp_path: Path) -> None:
    out, runs = tmp_path / "runs.jsonl", Runs()
    with pytest.raises(KeyboardInterrupt):
        list(json_lines.resumed(out, units(12, 13, 14), runs))
    assert [line["seed"] for line in json_lines.read(out)] == [12]
    assert runs.ends == 1


def test_without_a_file_all_units_are_measured_and_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert len([*json_lines.resumed(None, units(1, 2), Runs())]) == 2
    assert capsys.readouterr().err == "measured: rivals 0, seed 1\nmeasured: rivals 0, seed 2\n"
