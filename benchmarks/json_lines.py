"""A campaign's file: one JSON object a line, appended after each run, so that a campaign resumes.

resumed(file, units, measured) -> the line of each unit, of which those that the file lacks are
measured
"""

import json
import os
import subprocess
import sys
from argparse import Namespace
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

Line = dict[str, Any]
#: The fields that tell a line from all others: its conditions, and its seed or name.
Unit = Mapping[str, Any]
#: The field that each line of a file has beside them.
_COMMIT = "commit"
#: The data of campaigns, which grow while they run.
_DATA = "docs/campaigns/data"
#: The other fields of units, in their order, as they are measured.
Measuring = Generator[Mapping[str, Any], None, None]


def resumed(
    out: Path | None, units: Sequence[Unit], measured: Callable[[Sequence[Unit]], Measuring]
) -> Iterator[Line]:
    """The line of each unit, in their order: from the file, else measured, and kept as soon as it is
    known. `measured` begins only if a unit is lacking, and ends with the last one.
    """
    lines = read(out)
    found = [next((line for line in lines if unit.items() <= line.items()), None) for unit in units]
    lacking = [unit for unit, line in zip(units, found, strict=True) if line is None]
    with closing(measured(lacking)) as measuring:
        for unit, line in zip(units, found, strict=True):
            yield _kept(out, {**unit, **next(measuring)}) if line is None else line


def conditions(options: Namespace, *names: str) -> dict[str, Any]:
    """The options of these names, as fields of units."""
    return {name: getattr(options, name) for name in names}


def read(out: Path | None) -> list[Line]:
    """The objects of the file, none if there is no file. A last line without its end, which a script
    leaves that is killed while it writes, is removed. Lines of another commit count, and the script
    says so.
    """
    if out is None:
        return []
    commit()  # before the first unit: files may change while a campaign runs
    if not out.exists():
        return []
    content = out.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    if whole != content:
        os.truncate(out, len(whole))
    lines = [json.loads(line) for line in whole.splitlines()]
    _tell_other_commits([line.pop(_COMMIT, "unknown") for line in lines])
    return lines


def append(out: Path | None, run: Mapping[str, Any]) -> None:
    """Keep one more run, with the commit that measured it; nothing without a file."""
    if out:
        with out.open("a") as file:
            file.write(json.dumps({**run, _COMMIT: commit()}) + "\n")


@cache
def commit() -> str:
    """The commit of the checkout when this was first called, with "-dirty" if a tracked file differs
    from it that is no data of a campaign; "" where that is not known.
    """
    name = _git("describe", "--always", "--exclude=*")
    changed = _git("status", "--porcelain", "--untracked-files=no", "--", ":(top)", f":(top,exclude){_DATA}")
    return f"{name}-dirty" if changed else name


def _git(*words: str) -> str:
    """What git says; "" where it cannot."""
    try:
        done = subprocess.run(
            ["git", *words], cwd=Path(__file__).parent, capture_output=True, text=True, check=False
        )
    except OSError:
        return ""
    return done.stdout.strip()


def _tell_other_commits(commits: Sequence[str]) -> None:
    others = Counter(name for name in commits if name != commit())
    if others:
        said = ", ".join(f"{count} of {name}" for name, count in others.items())
        print(f"the file has lines of other commits than {commit()}: {said}", file=sys.stderr, flush=True)


def _kept(out: Path | None, line: Line) -> Line:
    """The line as the file has it. Its plain fields are shown."""
    append(out, line)
    shown = (f"{name} {value}" for name, value in line.items() if not isinstance(value, dict | list | tuple))
    print("measured:", ", ".join(shown), file=sys.stderr, flush=True)
    return dict(json.loads(json.dumps(line)))
