"""The command line of the scripts."""

import importlib
import pkgutil
from pathlib import Path

import pytest

import benchmarks
from benchmarks.options import ScriptParser, run_script
from pgperf.core.exceptions import ClientFailed


@pytest.mark.parametrize(
    ("words", "expected"),
    [((), 25), (("--quick",), 7), (("--rounds", "3"), 3), (("--quick", "--rounds", "3"), 3), (("--rounds", "0"), 0)],
)  # fmt: skip
def test_a_size_is_what_is_given_else_that_of_the_run(words: tuple[str, ...], expected: int) -> None:
    parser = ScriptParser("")
    parser.add_size("--rounds", "slices of each layer", full=25, quick=7)
    assert parser.options(words).rounds == expected


def test_the_file_of_results_and_its_folder_are_made_before_anything_is_measured(tmp_path: Path) -> None:
    parser, out = ScriptParser(""), tmp_path / "new" / "folder" / "found.jsonl"
    parser.add_out()
    assert parser.options(["--out", str(out)]).out == out
    assert out.read_text() == ""
    out.write_text("kept\n")
    assert parser.options(["--out", str(out)]).out.read_text() == "kept\n"


def test_a_file_that_cannot_be_written_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    parser = ScriptParser("")
    parser.add_out()
    with pytest.raises(SystemExit):
        parser.options(["--out", str(tmp_path)])
    assert f"--out: {tmp_path}: Is a directory" in capsys.readouterr().err


def test_the_help_names_both_defaults(capsys: pytest.CaptureFixture[str]) -> None:
    parser = ScriptParser("What it measures.")
    parser.add_size("--slice-ms", "length of a slice", full=200, quick=80)
    with pytest.raises(SystemExit):
        parser.options(["--help"])
    said = capsys.readouterr().out
    assert "What it measures." in said
    assert "length of a slice (200; quick: 80)" in said


def test_what_pgperf_refuses_is_the_verdict() -> None:
    def main() -> int:
        raise ClientFailed("connection over tcp: refused")

    with pytest.raises(SystemExit) as ended:
        run_script(main)
    assert ended.value.code == "verdict: cannot measure: connection over tcp: refused"


SCRIPTS = [each.name for each in pkgutil.iter_modules(benchmarks.__path__)]


@pytest.mark.parametrize("name", SCRIPTS)
def test_each_script_explains_its_options(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    script = importlib.import_module(f"benchmarks.{name}")
    if not hasattr(script, "_options"):
        pytest.skip("not a script with options")
    monkeypatch.setattr("sys.argv", [name, "--help"])
    with pytest.raises(SystemExit) as ended:
        script._options()
    assert ended.value.code == 0
    assert (script.__doc__ or "").splitlines()[0] in capsys.readouterr().out
