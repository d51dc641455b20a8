"""A campaign's file: one JSON object a line, appended after each run, so that a campaign resumes."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def read(out: Path | None) -> list[dict[str, Any]]:
    """The objects of the file, none if there is no file. A last line without its end, which a script
    leaves that is killed while it writes, is removed.
    """
    if out is None or not out.exists():
        return []
    content = out.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    if whole != content:
        out.write_bytes(whole)
    return [json.loads(line) for line in whole.splitlines()]


def append(out: Path | None, run: Mapping[str, Any]) -> None:
    """Keep one more run; nothing without a file."""
    if out:
        with out.open("a") as file:
            file.write(json.dumps(run) + "\n")
