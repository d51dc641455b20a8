"""The fields of a level that is read from JSON."""

from typing import Any

import pytest

from pgperf.analysis import level_fields
from pgperf.core.records import Variant

VARIANT = {
    "workload": "site", "layer": "libpq", "mode": "simple", "route": "tcp", "clients": 1, "connect": "persistent",
    "placement": "apart",
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "stored"),
    [
        ("log_us", [[-35, 0.5, 35]]),
        ("log_over", [[70.0], [-70.0]]),
        ("log_over", []),
        ("us_over", [[1e15, -1e15]]),
    ],
)
def test_samples_up_to_the_largest_numbers_are_read(name: str, stored: list[list[float]]) -> None:
    assert level_fields.samples(name, stored) == tuple(map(tuple, stored))


@pytest.mark.parametrize(
    "stored",
    [None, {}, "ab", [1.0], [[]], [["1"]], [[True]], [[None]], [[35.1]], [[-36]], [[10**400]], [[float("nan")]],
     [[float("inf")]], [[1.0], [1.0]], [[1.0] * 1_001]],
    ids=range(15),
)  # fmt: skip
def test_what_is_no_sample_is_refused_by_name(stored: Any) -> None:
    with pytest.raises(ValueError, match=r"^log_us (is not a list|has) "):
        level_fields.samples("log_us", stored)


@pytest.mark.parametrize("stored", [None, 1e-9, 5, 1e15])
def test_times(stored: float | None) -> None:
    assert level_fields.time("us", stored) == stored


@pytest.mark.parametrize("stored", [0, -1, 1e-10, 1.1e15, 10**400, "5", True, [], float("nan")], ids=range(9))
def test_what_is_no_time_is_refused_by_name(stored: Any) -> None:
    with pytest.raises(ValueError, match=r"^us is .*, which is not a time in µs$"):
        level_fields.time("us", stored)


def test_a_variant_is_read() -> None:
    assert level_fields.variant(VARIANT) == Variant(**VARIANT)  # type: ignore[arg-type]
    full = {**VARIANT, "rate": 500, "schedule": "constant", "hosts": 2, "named": True, "workers": 4}
    assert level_fields.variant(full).rate == 500


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("clients", 0), ("clients", 1.0), ("clients", True), ("clients", 10**7), ("workers", "1"), ("control", -1),
        ("hosts", None), ("named", 1), ("rate", 0), ("rate", "5"), ("rate", float("inf")), ("route", 5),
        ("route", None), ("layer", []), ("workload", "a\nb"), ("environment", "x" * 301), ("schedule", {}),
    ],
)  # fmt: skip
def test_an_odd_field_of_a_variant_is_refused_by_name(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=rf"^variant\.{name} is "):
        level_fields.variant({**VARIANT, name: value})


@pytest.mark.parametrize("stored", [None, [], "x", {}, {**VARIANT, "colour": "red"}], ids=range(5))
def test_what_is_no_variant_is_refused(stored: Any) -> None:
    with pytest.raises(ValueError, match=r"^variant"):
        level_fields.variant(stored)
