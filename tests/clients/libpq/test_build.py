"""Building the C client: what comes out, and what is said when something is missing."""

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from pgperf.core.exceptions import LayerUnavailable
from pgperf.install.c_client import FLAGS, SOURCE_DIR, BuildResult, build
from pgperf.install.launch import C_CLIENT, c_client


@pytest.fixture(scope="module")
def pg_config(stack: dict[str, str]) -> str:
    return stack["PGPERF_PG_CONFIG"]


@pytest.fixture(scope="module")
def built(pg_config: str, tmp_path_factory: pytest.TempPathFactory) -> BuildResult:
    return build(tmp_path_factory.mktemp("build") / "made" / "on demand", pg_config=pg_config)


def ask(program: str | Path, option: str, **env: str) -> str:
    done = subprocess.run(
        [program, option], capture_output=True, text=True, check=True, env={**os.environ, **env}
    )
    return done.stdout


def test_the_client_is_where_the_layers_look_for_it(built: BuildResult) -> None:
    assert c_client(str(built.path.parent)) == str(built.path)
    assert {path.name for path in built.path.parent.iterdir()} == {C_CLIENT, ".gitignore"}


def test_it_loads_the_libpq_it_was_built_against(built: BuildResult, pg_config: str) -> None:
    version = ask(pg_config, "--version").split()[1]
    assert built.libpq_version == version
    assert f"libpq {version})" in ask(built.path, "--version", LD_LIBRARY_PATH="/usr/lib/x86_64-linux-gnu")


def test_it_has_the_version_of_the_package(built: BuildResult) -> None:
    project = tomllib.loads((SOURCE_DIR.parents[2] / "pyproject.toml").read_text())["project"]
    assert ask(built.path, "--version").startswith(f"pgperf-libpq {project['version']} ")


def test_a_build_replaces_the_one_before_while_that_one_runs(
    built: BuildResult, pg_config: str, tmp_path: Path
) -> None:
    first = Path(shutil.copy(built.path, tmp_path))
    inode = first.stat().st_ino
    with subprocess.Popen([first], stdin=subprocess.PIPE) as running:
        again = build(tmp_path, pg_config=pg_config)
        assert running.poll() is None
    assert again.path == first
    assert again.path.stat().st_ino != inode
    assert running.returncode == 0


def test_the_log_has_the_command_and_no_temporary_name(built: BuildResult) -> None:
    assert f"-o {built.path} " in built.log
    assert all(flag in built.log for flag in FLAGS)


def test_make_builds_the_same(built: BuildResult, pg_config: str, tmp_path: Path) -> None:
    command = ["make", "-C", str(SOURCE_DIR), f"PG_CONFIG={pg_config}", f"BUILD_DIR={tmp_path}", "CC=cc"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout

    def flags(text: str) -> set[str]:
        return {flag for flag in re.findall(r"(?<!\S)-\S+", text) if not flag.startswith(("-C", "-o"))}

    assert flags(next(line for line in said.splitlines() if line.startswith("cc "))) == flags(
        built.log.splitlines()[0]
    )
    assert ask(tmp_path / C_CLIENT, "--version").startswith("pgperf-libpq")


def test_without_a_compiler_it_says_what_to_install(pg_config: str, tmp_path: Path) -> None:
    with pytest.raises(
        LayerUnavailable, match=r"'no-such-cc' is not a program here; install .*apt install gcc"
    ):
        build(tmp_path, cc="no-such-cc", pg_config=pg_config)


def test_without_pg_config_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cc").symlink_to("/bin/true")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LayerUnavailable, match=r"'pg_config' is not a program here; .*apt install libpq-dev"):
        build(tmp_path)


def fake_program(folder: Path, script: str) -> str:
    path = folder / "fake"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def test_a_pg_config_without_headers_is_told(tmp_path: Path) -> None:
    with pytest.raises(LayerUnavailable, match=r"without libpq-fe\.h; .*apt install libpq-dev"):
        build(tmp_path / "out", pg_config=fake_program(tmp_path, "echo /nowhere"))


@pytest.mark.parametrize("script", ["exit 0", "echo broken; exit 3"])
def test_a_pg_config_without_an_answer_is_told(tmp_path: Path, script: str) -> None:
    with pytest.raises(LayerUnavailable, match="--includedir gave no answer"):
        build(tmp_path / "out", pg_config=fake_program(tmp_path, script))


def test_compiler_errors_are_logged_and_the_old_client_stays(pg_config: str, tmp_path: Path) -> None:
    (tmp_path / C_CLIENT).write_text("the one before")
    with pytest.raises(LayerUnavailable, match=r"(?s)does not compile.*no such luck"):
        build(tmp_path, cc=fake_program(tmp_path, "echo no such luck; exit 1"), pg_config=pg_config)
    assert (tmp_path / C_CLIENT).read_text() == "the one before"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fake", C_CLIENT]


def test_a_program_that_does_not_run_is_refused(pg_config: str, tmp_path: Path) -> None:
    with pytest.raises(LayerUnavailable, match=r"does not run|cannot be run"):
        build(tmp_path / "out", cc=fake_program(tmp_path, "exit 0"), pg_config=pg_config)


def test_a_folder_that_cannot_be_made_is_told(pg_config: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(LayerUnavailable, match="choose another PGPERF"):
        build(tmp_path / "file" / "below", pg_config=pg_config)
