"""The Run state machine on SQLite, in a separate process: it needs no PostgreSQL."""

import json
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parent / "own_database.py"


def test_the_state_machine_on_sqlite(tmp_path: Path) -> None:
    own = {"ENGINE": "django.db.backends.sqlite3", "NAME": str(tmp_path / "site.sqlite3")}
    done = subprocess.run(
        [sys.executable, str(SCRIPT), json.dumps(own)],
        cwd=SCRIPT.parent.parent,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.stderr, done.stdout) == ("", "conflict, lost, done, cancelled; 1 of 20 won\n")
