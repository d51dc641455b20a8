"""The Python that runs a layer, and the environment for drivers that a site lacks."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pgperf.clients import isolated
from pgperf.core import layers
from pgperf.core.exceptions import LayerUnavailable
from pgperf.install import drivers, launch


@pytest.fixture
def no_psycopg(monkeypatch: pytest.MonkeyPatch) -> None:
    """A site without psycopg."""
    without("psycopg", monkeypatch)


@pytest.fixture
def no_uvloop(monkeypatch: pytest.MonkeyPatch) -> None:
    """A site with every driver, without uvloop."""
    without("uvloop", monkeypatch)


def without(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    find = launch.importlib.util.find_spec

    def find_others(name: str) -> Any:
        return None if name == module else find(name)

    monkeypatch.setattr(launch.importlib.util, "find_spec", find_others)


def own_environment(build_dir: Path, module: str, version: str = "3.12") -> str:
    """Looks like what `build --drivers` makes. `version`: that of the Python with the module."""
    package = build_dir / launch.DRIVERS / "lib" / f"python{version}" / "site-packages" / module
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (build_dir / launch.DRIVERS / "pyvenv.cfg").write_text("home = /usr/bin\nversion = 3.12.3\n")
    python = build_dir / launch.DRIVERS / "bin" / "python"
    python.parent.mkdir(parents=True, exist_ok=True)
    if not python.is_symlink():
        python.symlink_to(sys.executable)
    return str(python)


def test_a_driver_installed_in_the_site_runs_in_the_site(tmp_path: Path) -> None:
    own_environment(tmp_path, "psycopg")
    assert launch.interpreter("psycopg", str(tmp_path)) == sys.executable
    assert launch.command("psycopg", str(tmp_path)) == [
        sys.executable,
        "-m",
        "pgperf.clients.programs.psycopg_client",
    ]


def test_a_driver_that_is_not_installed(no_psycopg: None, tmp_path: Path) -> None:
    own_environment(tmp_path, "asyncpg")
    assert launch.interpreter("psycopg", str(tmp_path)) == ""
    assert "pgperf build --drivers" in launch.unavailable("psycopg", "simple", str(tmp_path))


def test_pgperfs_own_environment_needs_no_setting(no_psycopg: None, tmp_path: Path) -> None:
    python = own_environment(tmp_path, "psycopg")
    assert launch.interpreter("psycopg", str(tmp_path)) == python
    assert launch.unavailable("psycopg", "simple", str(tmp_path)) == ""
    assert launch.command("psycopg", str(tmp_path)) == [
        python,
        "-I",
        isolated.__file__,
        "pgperf.clients.programs.psycopg_client",
    ]


def test_a_driver_of_an_earlier_python_is_not_there(no_psycopg: None, tmp_path: Path) -> None:
    own_environment(tmp_path, "psycopg", "3.11")
    assert launch.interpreter("psycopg", str(tmp_path)) == ""
    python = own_environment(tmp_path, "psycopg", "3.12")
    assert launch.interpreter("psycopg", str(tmp_path)) == python


def test_a_folder_that_is_no_environment_has_no_drivers(no_psycopg: None, tmp_path: Path) -> None:
    own_environment(tmp_path, "psycopg")
    (tmp_path / launch.DRIVERS / "pyvenv.cfg").unlink()
    assert launch.interpreter("psycopg", str(tmp_path)) == ""


def test_a_layer_on_uvloop_runs_where_its_driver_and_uvloop_both_are(no_uvloop: None, tmp_path: Path) -> None:
    python = own_environment(tmp_path, "uvloop")
    assert launch.interpreter("asyncpg_uvloop", str(tmp_path)) == ""
    own_environment(tmp_path, "asyncpg")
    assert launch.interpreter("asyncpg_uvloop", str(tmp_path)) == python
    assert launch.interpreter("asyncpg", str(tmp_path)) == sys.executable


def test_a_missing_uvloop_is_required_with_the_drivers_that_run_on_it(no_uvloop: None) -> None:
    on_uvloop = [layer for layer in layers.LAYERS.values() if layer.event_loop]
    assert set(drivers.missing()) >= {each for layer in on_uvloop for each in layer.requirements}
    assert {layer.event_loop_requirement for layer in on_uvloop} == {"uvloop>=0.21,<1"}


def test_a_named_interpreter_comes_first(tmp_path: Path) -> None:
    named = {"psycopg": "/bin/sh", "psycopg2": "/no/such/python"}
    assert launch.command("psycopg", str(tmp_path), named)[0] == "/bin/sh"
    assert launch.unavailable("psycopg2", "simple", str(tmp_path), named)


@pytest.mark.parametrize("layer", ["django_cursor", "django_orm", "fake"])
def test_a_layer_of_the_site_ignores_a_named_interpreter(layer: str, tmp_path: Path) -> None:
    assert not layers.LAYERS[layer].may_run_elsewhere
    assert launch.interpreter(layer, str(tmp_path), {layer: "/bin/sh"}) == sys.executable


def test_only_missing_drivers_are_required(no_psycopg: None) -> None:
    wanted = drivers.missing()
    assert layers.LAYERS["psycopg"].requirement in wanted
    assert layers.LAYERS["psycopg2"].requirement not in wanted


def test_every_driver_of_a_layer_can_be_installed() -> None:
    for layer in layers.LAYERS.values():
        assert bool(layer.requirement or layer.remedy) == layer.may_run_elsewhere


def test_no_environment_is_created_if_no_driver_is_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(drivers, "missing", tuple)
    assert drivers.build_drivers(tmp_path).requirements == ()
    assert not list(tmp_path.iterdir())


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What would be started."""
    found: list[list[str]] = []
    monkeypatch.setattr(drivers, "_run", lambda argv, trouble: found.append(argv))
    return found


def test_an_earlier_environment_is_made_anew(
    no_psycopg: None, commands: list[list[str]], tmp_path: Path
) -> None:
    """Its Python may be gone, and venv would keep the link to it."""
    own_environment(tmp_path, "psycopg", "3.11")
    drivers.build_drivers(tmp_path)
    assert commands[0] == [sys.executable, "-m", "venv", "--clear", str(tmp_path / launch.DRIVERS)]


def test_a_folder_that_is_no_environment_is_not_emptied(
    no_psycopg: None, commands: list[list[str]], tmp_path: Path
) -> None:
    (tmp_path / launch.DRIVERS).mkdir()
    (tmp_path / launch.DRIVERS / "notes.txt").touch()
    drivers.build_drivers(tmp_path)
    assert "--clear" not in commands[0]


def test_a_folder_that_cannot_be_created_is_an_error(no_psycopg: None, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(LayerUnavailable, match="choose another PGPERF"):
        drivers.build_drivers(tmp_path / "file")


def test_the_error_contains_the_output_of_pip(
    no_psycopg: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(drivers, "missing", lambda: ("no such requirement",))
    with pytest.raises(LayerUnavailable, match=r"(?s)pip cannot install the drivers.*no such requirement"):
        drivers.build_drivers(tmp_path)


def test_the_isolated_python_imports_pgperf_only(tmp_path: Path) -> None:
    """A fake client that talks under another Python sees pgperf and nothing else of this
    environment.
    """
    code = (
        "import sys, runpy; sys.argv = ['isolated.py', 'pgperf.clients.programs.__init__'];"
        f"runpy.run_path({isolated.__file__!r}, run_name='__main__');"
        "import importlib.util as u, pgperf.core.protocol; print(u.find_spec('django'), pgperf.core.protocol.__file__)"
    )
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path)], check=True)
    ask = [str(tmp_path / "bin" / "python"), "-I", "-c", code]
    said = subprocess.run(ask, capture_output=True, text=True, check=True).stdout
    assert said.split() == ["None", str(Path(layers.__file__).with_name("protocol.py"))]
