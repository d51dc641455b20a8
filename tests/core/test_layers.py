"""The layers that a machine can run, and the reasons for the others."""

import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from pgperf.core import layers
from pgperf.core.layers import LAYERS
from pgperf.core.records import MODES
from pgperf.install import launch
from pgperf.install.launch import unavailable, unavailable_in_all


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The modules that can be found; a test adds and removes some."""
    there = {"psycopg", "psycopg_binary", "psycopg2", "asyncpg", "uvloop"}

    def find(name: str) -> Any:
        return object() if name in there else None

    monkeypatch.setattr(launch.importlib.util, "find_spec", find)
    return there


def modes_of(layer: str, build_dir: Path) -> list[str]:
    return [mode for mode in MODES if not unavailable(layer, mode, str(build_dir))]


def test_modes_where_every_driver_is_installed(installed: set[str], tmp_path: Path) -> None:
    every, simple = list(MODES), ["simple"]
    elsewhere = ("libpq", "pgbench", "pgbench_one_thread", "psycopg_python")  # need more than a driver
    found = {name: modes_of(name, tmp_path) for name in LAYERS if name not in elsewhere}
    assert found == {
        "psycopg2": simple,
        "django_cursor_psycopg2": simple,
        "django_orm_psycopg2": simple,
        "psycopg": every,
        "psycopg_c": [],
        "psycopg_binary": every,
        "psycopg_async": every,
        "psycopg_async_uvloop": every,
        "asyncpg": ["extended", "prepared"],
        "asyncpg_uvloop": ["extended", "prepared"],
        "django_cursor": every,
        "django_orm": every,
        "django_orm_async": every,
        "django_view": every,
        "http": [],
        "fake": every,
    }


def test_a_layer_that_lacks_a_mode_can_still_run(installed: set[str], tmp_path: Path) -> None:
    assert "extended protocol only" in unavailable("asyncpg", "simple", str(tmp_path))
    assert unavailable_in_all("asyncpg", str(tmp_path)) == ""


def test_a_site_on_psycopg2_alone(installed: set[str], tmp_path: Path) -> None:
    installed -= {"psycopg", "psycopg_binary"}
    assert launch.django_driver() == "psycopg2"
    assert modes_of("django_orm", tmp_path) == ["simple"]
    assert "extended needs psycopg 3" in unavailable("django_orm", "extended", str(tmp_path))
    assert unavailable("django_orm_psycopg2", "simple", str(tmp_path)) == (
        "Django uses psycopg2 here anyway: choose django_orm"
    )


def test_a_driver_that_must_be_compiled_names_the_remedy(installed: set[str], tmp_path: Path) -> None:
    assert "pip install 'psycopg[c]'" in unavailable("psycopg_c", "simple", str(tmp_path))


@pytest.mark.parametrize(
    ("lacking", "named"),
    [(["uvloop"], "uvloop is"), (["asyncpg", "uvloop"], "asyncpg and uvloop are")],
)
def test_a_layer_on_uvloop_needs_its_driver_and_uvloop(
    installed: set[str], tmp_path: Path, lacking: list[str], named: str
) -> None:
    installed -= {*lacking}
    assert unavailable("asyncpg_uvloop", "prepared", str(tmp_path)) == (
        f"{named} not installed here: run `manage.py pgperf build --drivers`"
    )
    assert bool(unavailable("asyncpg", "prepared", str(tmp_path))) == ("asyncpg" in lacking)


def test_a_layer_on_uvloop_differs_in_its_loop_alone() -> None:
    for name in ("psycopg_async", "asyncpg"):
        other, own = LAYERS[f"{name}_uvloop"], LAYERS[name]
        assert (own.event_loop, other.event_loop) == ("", "uvloop")
        same = (
            "program",
            "modules",
            "modes",
            "connection_modes",
            "has_workers",
            "copy_modes",
            "batch_modes",
            "rung",
        )
        assert all(getattr(own, field) == getattr(other, field) for field in same)


@pytest.mark.parametrize(("found", "reason"), [("libpq.so.5", ""), (None, "apt install libpq5")])
def test_psycopg_python_needs_the_systems_libpq(
    installed: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, found: str | None, reason: str
) -> None:
    monkeypatch.setattr(launch.ctypes.util, "find_library", lambda name: found)
    launch._system_libpq.cache_clear()
    said = unavailable("psycopg_python", "simple", str(tmp_path))
    launch._system_libpq.cache_clear()
    assert reason in said
    assert bool(said) == bool(reason)


def test_libpq_needs_the_built_c_client(tmp_path: Path) -> None:
    assert "pgperf build" in unavailable("libpq", "simple", str(tmp_path))


@pytest.mark.parametrize("layer", LAYERS.values(), ids=list(LAYERS))
def test_a_layer_that_lacks_a_mode_has_a_reason(layer: layers.Layer) -> None:
    assert bool(layer.mode_reason) == (set(layer.modes) != set(MODES))


def test_the_base_layer_is_the_only_one_on_the_lowest_rung() -> None:
    lowest = min(layer.rung for layer in LAYERS.values())
    assert [layer.name for layer in LAYERS.values() if layer.rung == lowest] == [layers.BASE_LAYER]


def test_each_driver_is_an_extra_with_the_versions_that_its_layers_need() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    extras = {
        name: str(Requirement(one).specifier)
        for name, (one, *_rest) in project["optional-dependencies"].items()
        if Requirement(one).name in layers.distributions()
    }
    needs = [Requirement(each) for layer in LAYERS.values() for each in layer.requirements]
    del extras["pool"]  # of connection mode pool, not a driver
    extras["pycurl"] = extras.pop("web")
    assert extras == {need.name.removesuffix("-binary"): str(need.specifier) for need in needs}
