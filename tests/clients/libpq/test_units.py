"""The C client's modules by themselves, each test program under ASan and UBSan."""

import subprocess
from pathlib import Path

import pytest

from tests.clients.libpq.programs import compile_program


@pytest.mark.parametrize("name", ["json_units", "line_units", "message_units", "timed_units"])
def test_the_unit_tests_of_a_module_pass(name: str, modules: list[Path], tmp_path: Path) -> None:
    program = compile_program(name, tmp_path, modules)
    done = subprocess.run([program], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
