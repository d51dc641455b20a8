"""Labels are for people: code asks a variant's fields and takes no label apart."""

import re
from dataclasses import replace
from pathlib import Path

import pgperf
from pgperf.core.records import Variant

PACKAGE = Path(pgperf.__file__).parent
PARSED = re.compile(r'\.(r?split|r?partition|removeprefix|removesuffix|index|find)\(f?"[^"]*·')
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
