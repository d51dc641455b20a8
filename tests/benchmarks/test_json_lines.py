"""benchmarks.json_lines: a campaign's file is read again, also after a kill."""

from pathlib import Path

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
