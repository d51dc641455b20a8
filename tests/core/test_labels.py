"""Labels are for people: code asks a variant's fields and takes no label apart."""

import re
from dataclasses import replace
from pathlib import Path

import pgperf
from pgperf.core.delayed_routes import lengthened
from pgperf.core.layers import LAYERS
from pgperf.core.limits import CLIENTS, LOAD_HOSTS_HIGH, RATE_HIGH, WORKERS
from pgperf.core.records import CONNECTION_MODES, MODES, SCHEDULES, Variant
from pgperf.models import ChangePoint, Run, Target, VariantResult, Workload

PACKAGE = Path(pgperf.__file__).parent
PARSED = re.compile(r'\.(r?split|r?partition|removeprefix|removesuffix|index|find)\((f?"[^"]*·|\w*SEPARATOR)')
VARIANT = Variant(
    workload="w",
    layer="libpq",
    mode="simple",
    route="tcp",
    clients=1,
    connect="persistent",
    placement="apart",
)


def test_no_module_splits_a_label() -> None:
    found = [path for path in PACKAGE.rglob("*.py") if PARSED.search(path.read_text())]
    assert found == []


def test_differing_fields_are_named() -> None:
    assert VARIANT.differs_in(VARIANT) == set()
    assert VARIANT.differs_in(replace(VARIANT, clients=8, route="a · 8 clients")) == {"clients", "route"}


def test_details_follow_the_layer() -> None:
    named = replace(VARIANT, named=True, mode="prepared", clients=8, control=1)
    assert named.details == ("tcp", "w", "prepared", "8 clients", "control 1")
    assert named.label == "libpq · tcp · w · prepared · 8 clients · control 1"


def longest_label() -> str:
    """Of the variant whose every field has its longest value."""
    return Variant(
        workload="w" * Workload._meta.get_field("name").max_length,
        layer=max(LAYERS, key=len),
        mode=max(MODES, key=len),
        route=lengthened("r" * Target._meta.get_field("route").max_length, 1234.567),
        clients=CLIENTS.high,
        connect=max(CONNECTION_MODES, key=len),
        placement="apart",
        control=1000,
        named=True,
        workers=WORKERS.high,
        environment="e" * VariantResult._meta.get_field("environment").max_length,
        rate=RATE_HIGH - 0.123456,
        schedule=max(SCHEDULES, key=len),
        hosts=LOAD_HOSTS_HIGH,
    ).label


def test_every_column_of_a_label_holds_the_longest() -> None:
    columns = [
        (VariantResult, "label"),
        (ChangePoint, "label"),
        (ChangePoint, "below"),
        (Run, "confirms_variant"),
    ]
    label = longest_label()
    assert len(label) > 200
    for model, name in columns:
        assert len(label) <= (model._meta.get_field(name).max_length or 0), f"{model.__name__}.{name}"
