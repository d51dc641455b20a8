"""The content of the wheel: all files for run time, and no development files."""

import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

from hatch_build import FILES
from tests.installation.environments import ROOT, build_distributions


@pytest.fixture(scope="module")
def names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_the_wheel_is_for_every_python(wheel: Path) -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert wheel.name == f"pgperf-{version}-py3-none-any.whl"


@pytest.mark.parametrize(
    ("folder", "pattern"),
    [
        ("", "*.py"),
        ("clients/libpq", "*.[ch]"),
        ("clients/libpq", "Makefile"),
        ("templates", "*.html"),
        ("static", "*.css"),
        ("static", "*.js"),
        ("migrations", "0*.py"),
        ("", "py.typed"),
    ],
)
def test_the_wheel_contains_all_files_of_a_kind(names: set[str], folder: str, pattern: str) -> None:
    wanted = {str(path.relative_to(ROOT)) for path in (ROOT / "pgperf" / folder).rglob(pattern)}
    assert wanted, "a pattern that nothing matches"
    assert wanted <= names


def test_the_wheel_contains_the_documents_that_hints_name(names: set[str]) -> None:
    wanted = {f"pgperf/{path.relative_to(ROOT)}" for path in (ROOT / "docs").rglob("*.md")}
    assert "pgperf/docs/reference.md" in wanted
    assert wanted <= names


def test_the_wheel_contains_chart_js_with_map_and_licences(names: set[str]) -> None:
    assert {f"pgperf/static/pgperf/vendor/{name}" for name in FILES} <= names


def test_the_wheel_contains_no_other_files(names: set[str]) -> None:
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {"pgperf"}
    assert not [name for name in names if name.endswith((".pyc", ".o")) or "node_modules" in name]


def test_no_driver_is_required(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        lines = archive.read(name).decode().splitlines()
    required = [line for line in lines if line.startswith("Requires-Dist:") and "extra ==" not in line]
    assert required
    assert not [line for line in required if "psycopg" in line or "asyncpg" in line]


def test_a_wheel_from_the_sdist_is_identical(names: set[str], tmp_path: Path) -> None:
    (sdist,) = build_distributions(tmp_path / "sdist", "sdist")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    source = tmp_path / sdist.name.removesuffix(".tar.gz")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path / "again")]
    subprocess.run(command, cwd=source, check=True, capture_output=True)
    (again,) = (tmp_path / "again").iterdir()
    with zipfile.ZipFile(again) as archive:
        assert set(archive.namelist()) == names


def test_a_wheel_without_chart_js_is_refused(tmp_path: Path) -> None:
    (sdist,) = build_distributions(tmp_path / "sdist", "sdist")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    source = tmp_path / sdist.name.removesuffix(".tar.gz")
    (source / "pgperf/static/pgperf/vendor/chart.umd.js.map").unlink()
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel"]
    done = subprocess.run(command, cwd=source, capture_output=True, text=True, check=False)
    assert done.returncode
    assert "lacks chart.umd.js.map: run `make wheel`" in done.stderr
