"""What the Python of an environment reports, and what it cannot run."""

import platform
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import pgperf
from benchmarks.twin import empty_environment, packages, twin
from pgperf.core.client_environment import ClientEnvironment
from pgperf.core.exceptions import LayerUnavailable
from pgperf.core.layers import LAYERS
from pgperf.install import environments
from pgperf.install.environments import Installed
from tests.client_environments import with_other_pgperf

BARE = Installed("3.11.7", pgperf.__version__, {}, frozenset({"django", "psycopg2"}), ())


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("environments")


def test_a_twin_has_the_versions_of_this_python(directory: Path) -> None:
    own = environments.examine(environments.default())
    found = environments.examine(twin(directory))
    assert found.to_json() == own.to_json()
    assert found.python == platform.python_version()
    assert found.modules == own.modules
    assert "django" in found.modules
    assert environments.refusal(found) == ""


def test_another_version_of_pgperf_is_refused(directory: Path) -> None:
    found = environments.examine(with_other_pgperf(directory, "0.0.9"))
    assert environments.refusal(found) == (
        f"pgperf 0.0.9 is installed there, and this is {pgperf.__version__}: install the same there, so that both sides"
        " measure alike"
    )


def test_without_pgperf_the_refusal_says_what_to_install(directory: Path) -> None:
    found = environments.examine(empty_environment(directory, "empty"))
    assert (found.pgperf, found.packages) == ("", {})
    assert f"install pgperf {pgperf.__version__}" in environments.refusal(found)


@pytest.mark.parametrize("python", ["/bin/true", "/bin/cat", "/no/such/python", "/"])
def test_what_is_no_python_is_named(python: str) -> None:
    with pytest.raises(LayerUnavailable, match=python):
        environments.examine(ClientEnvironment("a", python))


def test_noise_of_a_start_hook_does_not_hide_the_report(directory: Path) -> None:
    noisy = twin(directory, "noisy")
    (packages(noisy) / "noise.pth").write_text("import sys; print('hello')\n")
    assert environments.examine(noisy).pgperf == pgperf.__version__


def test_variables_of_the_entry_reach_the_python(directory: Path) -> None:
    other = twin(directory, "variables")
    named = replace(other, variables={"PYTHONPATH": str(directory / "lent")})
    assert str(directory / "lent") in environments.examine(named).path


@pytest.mark.parametrize("layer", sorted(LAYERS))
def test_only_python_programs_have_environments(layer: str) -> None:
    entry = LAYERS[layer]
    expected = entry.program != "" and layer not in ("pgbench", "pgbench_one_thread", "http")
    assert entry.has_environments == expected


@pytest.mark.parametrize(
    ("layer", "mode", "reason"),
    [
        ("libpq", "simple", "no Python program"),
        ("psycopg", "simple", "psycopg is not installed there"),
        ("psycopg2", "prepared", "binds on the client"),
        ("psycopg2", "simple", ""),
        ("django_orm", "simple", ""),
        ("django_orm", "prepared", "needs psycopg 3"),
        ("psycopg_async_uvloop", "simple", "psycopg is not installed there"),
        ("fake", "simple", ""),
    ],
)
def test_layers_by_the_modules_that_are_there(layer: str, mode: str, reason: str) -> None:
    found = environments.unavailable(layer, mode, BARE)
    assert reason in found
    assert bool(found) == bool(reason)


def test_a_layer_on_uvloop_needs_uvloop_there() -> None:
    with_psycopg = replace(BARE, modules=frozenset({"psycopg"}))
    assert environments.unavailable("psycopg_async_uvloop", "simple", with_psycopg) == (
        "uvloop is not installed there"
    )
    with_both = replace(BARE, modules=frozenset({"psycopg", "uvloop"}))
    assert environments.unavailable("psycopg_async_uvloop", "simple", with_both) == ""


def test_a_pool_needs_its_package_there() -> None:
    with_psycopg = replace(BARE, modules=frozenset({"django", "psycopg"}))
    assert "psycopg_pool" in environments.connection_unavailable("psycopg", "pool", with_psycopg)
    assert environments.connection_unavailable("psycopg", "persistent", with_psycopg) == ""


def test_the_default_environment_is_this_python() -> None:
    assert environments.default().python == sys.executable
