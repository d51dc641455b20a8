"""benchmarks.published: the options that its scripts share, and the load beside their runs."""

from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from benchmarks import published
from benchmarks.published_a import WANTED
from pgperf.runner import preflight

DONE: dict[str, Any] = {"run": {"status": "done", "error": ""}, "variants": [], "comparisons": []}


@pytest.mark.parametrize("words", [["--keep", "c"], ["--rivals", "2"]])
def test_what_is_for_measured_runs_goes_with_no_files(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["published_a", "--single", "a", "--several", "b", *words])
    with pytest.raises(SystemExit):
        published.options_of("", WANTED)
    assert f"{words[0]} is for runs that are measured" in capsys.readouterr().err
    monkeypatch.setattr("sys.argv", ["published_a", *words])
    assert published.options_of("", WANTED).rivals == (2 if "--rivals" in words else 0)


@pytest.mark.parametrize(("rivals", "ending"), [(0, ""), (2, "-beside-2")])
def test_the_rivals_spin_beside_all_runs_and_name_their_files(
    rivals: int,
    ending: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    without_stack: Callable[..., None],
) -> None:
    running: list[int] = [0]

    @contextmanager
    def spinning(count: int, most_s: float) -> Iterator[None]:
        assert most_s >= 24 * 3600
        running.append(count)
        yield
        running.append(0)

    def run(env: object, benchmark: str, *words: str, control: object) -> dict[str, Any]:
        return {**DONE, "beside": running[-1]}

    without_stack(published, "manage")
    monkeypatch.setattr(published, "spinning", spinning)
    monkeypatch.setattr(published, "try_benchmark", run)
    options = Namespace(single=None, several=None, keep=tmp_path, rivals=rivals, quick=False, resume=False)
    found = published.runs("published-a", options, WANTED)
    assert [each["beside"] for each in found] == [rivals, rivals]
    assert running == [0, rivals, 0]
    names = [f"published-a-several{ending}.json", f"published-a-single{ending}.json"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names


def test_a_script_whose_run_failed_goes_on_with_that_run(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    without_stack: Callable[..., None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked: list[tuple[str, ...]] = []

    def run(env: object, *words: str, control: object) -> dict[str, Any]:
        asked.append(words)
        if len(asked) == 2:
            return {**DONE, "run": {"status": "failed", "error": "the server left"}}
        return {**DONE, "number": len(asked)}

    without_stack(published, "manage")
    monkeypatch.setattr(published, "try_benchmark", run)
    options = Namespace(single=None, several=None, keep=tmp_path / "kept", rivals=0, quick=False, resume=True)
    with pytest.raises(SystemExit, match="cannot measure: the server left"):
        published.runs("published-a", options, WANTED)
    for _ in range(2):
        assert [each["number"] for each in published.runs("published-a", options, WANTED)] == [1, 3]
    kept = tmp_path / "kept" / "published-a-single.json"
    assert f"kept already: {kept}" in capsys.readouterr().err
    options.quick = True
    assert [each["number"] for each in published.runs("published-a", options, WANTED)] == [4, 5]
    options.resume = False
    assert [each["number"] for each in published.runs("published-a", options, WANTED)] == [6, 7]


def test_a_run_that_is_refused_for_its_time_leaves_the_others_and_is_not_kept(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    without_stack: Callable[..., None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    refusal = str(preflight.too_short(80.0, 60.0))

    def run(env: object, *words: str, control: object) -> dict[str, Any]:
        is_first = words[0] == "published-a"
        return {**DONE, "run": {"status": "failed", "error": refusal}} if is_first else {**DONE, "number": 2}

    without_stack(published, "manage")
    monkeypatch.setattr(published, "try_benchmark", run)
    options = Namespace(single=None, several=None, keep=tmp_path, rivals=2, quick=False, resume=False)
    first, second = published.runs("published-a", options, WANTED)
    assert (first[published.REFUSAL], first["variants"]) == (refusal, [])
    assert second["number"] == 2
    assert [path.name for path in tmp_path.iterdir()] == ["published-a-several-beside-2.json"]
    assert f"refused: {refusal}\n" in capsys.readouterr().err


def test_a_kept_run_counts_for_the_same_python_and_names_another_commit(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    without_stack: Callable[..., None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked: list[tuple[str, ...]] = []

    def run(env: object, *words: str, control: object) -> dict[str, Any]:
        asked.append(words)
        return {**DONE, "number": len(asked)}

    without_stack(published, "manage")
    monkeypatch.setattr(published, "try_benchmark", run)
    shared = {"single": None, "several": None, "keep": tmp_path, "rivals": 0, "quick": False, "resume": True}
    for commit, python, numbers in [("a", "3.12", [1, 2]), ("b", "3.12", [1, 2]), ("b", "3.13", [3, 4])]:
        monkeypatch.setattr(published, "commit", lambda commit=commit: commit)
        options = Namespace(**shared, python=Path(python))
        assert [each["number"] for each in published.runs("upgrades", options, WANTED)] == numbers
    assert capsys.readouterr().err.count(" (by commit a, this is b)\n") == 2


def test_only_kept_runs_can_be_resumed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["published_a", "--resume"])
    with pytest.raises(SystemExit):
        published.options_of("", WANTED)
    assert "--resume goes with --keep DIR" in capsys.readouterr().err
