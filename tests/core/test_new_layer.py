"""A new layer is one client program and one entry of LAYERS: every list then has it."""

import ast
import sys
from collections.abc import Iterator
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.forms import modelform_factory

import pgperf
from pgperf.admin.forms import BenchmarkForm
from pgperf.analysis.ladder import ladders
from pgperf.core.layers import LAYERS, OTHER, Family, Layer, Rung, place_of
from pgperf.db import validators
from pgperf.install import drivers, launch
from pgperf.models import Benchmark
from pgperf.reports import labels
from pgperf.reports.ladders import ladder_chart
from pgperf.reports.listing import abilities
from pgperf.runner import environment, preflight
from pgperf.runner.plan import make_plan
from pgperf.worker import heartbeat
from tests.analysis.synthetic import blocks, fitted, variant
from tests.runner.builders import definition
from tests.runner.test_run import Watcher, run

ENTRY = Layer(
    name="copycat",
    title="Copycat 1",
    program="tests.core.copycat_client",
    modules=("pytest",),
    distributions=("pytest",),
    requirement="pytest>=1",
    modes=("simple", "prepared"),
    mode_reason="a copycat has no mode extended",
    family=Family("copycat", "#102030", "#f0e0d0"),
    megabytes=7,
    start_seconds=0.5,
    connects=False,
)


@pytest.fixture(autouse=True)
def copycat(monkeypatch: pytest.MonkeyPatch) -> Layer:
    monkeypatch.setitem(LAYERS, ENTRY.name, ENTRY)
    return ENTRY


@pytest.mark.django_db
def test_forms_offer_it_if_it_connects_or_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    form = modelform_factory(Benchmark, form=BenchmarkForm, fields=["layers"])
    monkeypatch.setattr(form, "user", User(is_superuser=True))
    choice = ("copycat", "Copycat 1")
    assert choice not in form().fields["layers"].choices
    chosen = form(instance=Benchmark(layers=["copycat"]))
    assert choice in chosen.fields["layers"].choices
    monkeypatch.setitem(LAYERS, ENTRY.name, replace(ENTRY, connects=True))
    assert choice in form().fields["layers"].choices


def test_validators_accept_it() -> None:
    validators.layer_list(["copycat"])
    with pytest.raises(ValidationError, match="copycat"):
        validators.layer_list(["copydog"])


def test_the_list_has_it_with_its_modes(settings: Any) -> None:
    row = next(row for row in abilities() if row["name"] == "copycat")
    assert row == {
        "name": "copycat",
        "title": "Copycat 1",
        "modes": {"simple": "", "extended": "a copycat has no mode extended", "prepared": ""},
        "connection_modes": {
            "persistent": "",
            **dict.fromkeys(("per_operation", "pool", "request"), "its client keeps its connections"),
        },
        "python": sys.executable,
    }


def test_a_worker_reports_it() -> None:
    assert heartbeat.available_layers()["copycat"] == ""
    assert heartbeat.versions()["pytest"] == metadata.version("pytest")


def test_the_environment_of_a_run_has_its_driver() -> None:
    assert environment.packages()["pytest"] == metadata.version("pytest")


def test_the_estimate_knows_its_memory_and_its_start() -> None:
    alone = preflight.estimate(make_plan(definition(layers=("copycat",))))
    fake = preflight.estimate(make_plan(definition(layers=("fake",))))
    assert alone.memory_bytes == 2 * 7 << 20
    assert alone.seconds - fake.seconds == pytest.approx(2 * (0.5 - LAYERS["fake"].start_seconds))


def test_another_python_may_run_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert launch.command("copycat", "", {"copycat": "/bin/sh"})[0] == "/bin/sh"
    monkeypatch.setitem(
        LAYERS, "copycat", Layer(name="copycat", title="", modules=("no_module",), requirement="r>=1")
    )
    assert "r>=1" in drivers.missing()


def test_charts_have_its_title_and_colour() -> None:
    assert labels.layer_title("copycat") == "Copycat 1"
    assert labels.colour("copycat") == {"light": "#102030", "dark": "#f0e0d0"}


def test_a_ladder_chart_shows_it_beside_the_ladder() -> None:
    variants = [variant(layer) for layer in ("libpq", "psycopg", "copycat", "django_orm")]
    measured = fitted(blocks(variants, 6, 5, lambda of, number, round_: 10.0 * len(of.layer)))
    found = ladders(measured, variants, "psycopg")
    chart = ladder_chart(found[0], found)
    assert chart["rows"][-1] == ["Copycat 1", "alternative"]
    assert chart["colours"][-1] == {"light": "#102030", "dark": "#f0e0d0"}


def test_it_runs() -> None:
    watcher = Watcher()
    outcome = run(definition(layers=("copycat", "fake"), nominal_us={"fake": 20.0, "copycat": 40.0}), watcher)
    assert outcome.environment["layers"]["copycat"]["driver"] == "fake"
    assert {block.variant.layer for block in watcher.blocks} == {"copycat", "fake"}


def test_the_reference_describes_every_layer_that_ships() -> None:
    reference = (Path(pgperf.__file__).parents[1] / "docs/reference.md").read_text()
    assert [name for name in LAYERS if name != ENTRY.name and f"`{name}`" not in reference] == []


def rgb(colour: str) -> tuple[int, int, int]:
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return red, green, blue


@pytest.mark.parametrize("page", ["light", "dark"])
def test_every_family_has_a_colour_of_its_own(page: str) -> None:
    families = {layer.family for layer in LAYERS.values()}
    colours = {rgb(getattr(family, page)) for family in families}
    assert len(colours) == len(families) == len({family.name for family in families})


def test_only_the_fake_has_no_family() -> None:
    assert [layer.name for layer in LAYERS.values() if layer.family == OTHER] == ["fake"]


def test_a_layer_on_a_named_driver_has_its_place_on_django_s_own() -> None:
    for layer in LAYERS.values():
        if layer.rung > Rung.DRIVER:
            assert LAYERS[place_of(layer.name)].driver == ""
            assert LAYERS[place_of(layer.name)].rung == layer.rung


def imported(path: Path) -> Iterator[str]:
    """The top-level modules that a file imports."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield (node.module or "").partition(".")[0]


def test_only_clients_import_a_driver() -> None:
    modules = {name for layer in LAYERS.values() for name in layer.modules} - {"pytest"}
    root = Path(pgperf.__file__).parent
    outside = [path for path in root.rglob("*.py") if not path.is_relative_to(root / "clients")]
    assert [path for path in outside if modules & set(imported(path))] == []
