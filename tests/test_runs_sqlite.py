"""The Run state machine on SQLite, in a process of its own: nothing in it is PostgreSQL's alone."""

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parent / "sqlite_site.py"


def test_the_state_machine_on_sqlite(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(tmp_path / "site.sqlite3")],
        cwd=SCRIPT.parent.parent,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.stderr, done.stdout) == ("", "conflict, lost, done, cancelled; 1 of 20 won\n")
