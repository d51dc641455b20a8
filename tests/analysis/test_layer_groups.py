"""Which variants stand beside one another as layers, and the guests: layers that lack a mode."""

from dataclasses import replace

from pgperf.analysis.layer_groups import base_of, same_but_layer, with_guests
from pgperf.core.records import Variant

from .synthetic import variant

#: As the drivers have them: psycopg2 knows mode simple only, asyncpg has no mode simple.
BOTH = ("libpq", "psycopg")
DRIVERS = [
    *(variant(layer, mode="simple") for layer in (*BOTH, "psycopg2")),
    *(variant(layer, mode="extended") for layer in (*BOTH, "asyncpg")),
    *(variant(layer, mode="prepared") for layer in (*BOTH, "asyncpg")),
]


def guests(variants: list[Variant]) -> list[tuple[str, list[tuple[str, str]]]]:
    """The mode of each group, with its guests and their modes."""
    return [
        (group[0].mode, [(guest.layer, guest.mode) for guest in found])
        for group, found in with_guests(variants)
    ]


def test_a_layer_that_lacks_a_mode_is_a_guest_in_the_last_of_its_own() -> None:
    assert guests(DRIVERS) == [
        ("simple", [("asyncpg", "prepared")]),
        ("extended", [("psycopg2", "simple")]),
        ("prepared", [("psycopg2", "simple")]),
    ]


def test_the_groups_are_those_without_guests() -> None:
    assert [group for group, _found in with_guests(DRIVERS)] == same_but_layer(DRIVERS)


def test_a_layer_that_has_the_mode_elsewhere_is_no_guest() -> None:
    """libpq inserts a batch in mode prepared only, and has mode simple for other workloads."""
    batch = [replace(each, workload="batch") for each in DRIVERS]
    some = [each for each in batch if (each.layer, each.mode) != ("libpq", "simple")]
    found = dict(guests([*DRIVERS[:3], *some]))
    assert found["simple"] == [("asyncpg", "prepared")]


def test_a_guest_has_the_workload_route_and_connections_of_the_group() -> None:
    for change in ({"workload": "other"}, {"route": "tcp"}, {"clients": 2}, {"connect": "pool"}):
        apart = [*DRIVERS[:3], *(replace(each, **change) for each in DRIVERS[6:])]  # type: ignore[arg-type]
        assert [found for _group, found in with_guests(apart)] == [[], []]


def test_workers_stand_beside_workers() -> None:
    """Ten clients, and one client of ten workers, of the layers that can have them."""
    ten = [replace(each, clients=10) for each in (*DRIVERS[:3], *DRIVERS[6:])]
    workers = [replace(each, workers=10) for each in (*DRIVERS[1:3], *DRIVERS[7:])]
    found = {
        (group[0].mode, max(each.workers for each in group)): [(each.layer, each.workers) for each in beside]
        for group, beside in with_guests([*ten, *workers])
    }
    assert found == {
        ("simple", 1): [("asyncpg", 1)],
        ("prepared", 1): [("psycopg2", 1)],
        ("simple", 10): [("asyncpg", 10)],
        ("prepared", 10): [("psycopg2", 10)],
    }


def test_the_base_is_libpq_or_the_first_layer() -> None:
    assert base_of([DRIVERS[1], DRIVERS[0]]).layer == "libpq"
    assert base_of(DRIVERS[1:3]).layer == "psycopg"
