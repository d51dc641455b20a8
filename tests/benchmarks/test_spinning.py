"""The client that spins: its program starts as an interpreter, and waits for a request."""

import subprocess
from pathlib import Path

from benchmarks import spinning


def test_the_program_finds_the_client_that_it_extends(tmp_path: Path) -> None:
    path = spinning.write(tmp_path, 300)
    ended = subprocess.run([path], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert "ModuleNotFoundError" not in ended.stderr
    assert "ImportError" not in ended.stderr
    assert "300000" in Path(path).read_text()
