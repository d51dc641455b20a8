"""benchmarks.spinning: the program that it writes."""

import subprocess
from pathlib import Path

from benchmarks import spinning


def test_the_program_is_a_client(tmp_path: Path) -> None:
    """With the input closed, it ends as a client does."""
    program = spinning.write(tmp_path, 300)
    ended = subprocess.run([program], stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
    assert (ended.returncode, ended.stdout) == (0, b"")
