"""The env file keeps any path or password, and a shell reads the same values."""

import stat
import subprocess
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from example.env_file import read_env_file, write_env_file

VALUES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\r\0"))


@given(value=VALUES)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_value_is_written_and_read_unchanged(tmp_path: Path, value: str) -> None:
    write_env_file(tmp_path / "env", {"A": value, "B": "2"})
    assert read_env_file(tmp_path / "env") == {"A": value, "B": "2"}


def test_a_shell_can_read_the_file(tmp_path: Path) -> None:
    path, value = tmp_path / "env", 'it\'s $HOME; `date` "x" \\ # é'
    write_env_file(path, {"A": value})
    shell = subprocess.run(
        ["sh", "-c", f'. {path}; printf %s "$A"'], capture_output=True, text=True, check=True
    )
    assert shell.stdout == value


def test_only_the_owner_can_read_the_file(tmp_path: Path) -> None:
    write_env_file(tmp_path / "env", {"A": "secret"})
    assert stat.S_IMODE((tmp_path / "env").stat().st_mode) == 0o600


def test_nothing_else_is_left(tmp_path: Path) -> None:
    for value in ("1", "2"):
        write_env_file(tmp_path / "env", {"A": value})
    assert list(tmp_path.iterdir()) == [tmp_path / "env"]
    assert read_env_file(tmp_path / "env") == {"A": "2"}


def test_no_file_means_no_variables(tmp_path: Path) -> None:
    assert read_env_file(tmp_path / "env") == {}
