"""Titles and colours of layers."""

from pgperf.core.records import LeftOut
from pgperf.reports import labels


def test_an_unknown_layer_keeps_its_own_name() -> None:
    assert labels.layer_title("asyncpg_of_tomorrow") == "asyncpg_of_tomorrow"


def test_a_layer_on_another_driver_has_the_same_colour() -> None:
    assert labels.colour("django_orm_psycopg2") == labels.colour("django_orm")
    assert labels.colour("psycopg_python") == labels.colour("psycopg")
    assert labels.colour("psycopg2") == {"light": "#9c3587", "dark": "#d982c4"}


def test_omitted_parts_have_readable_names() -> None:
    for left, title in (
        (
            LeftOut(layer="django_orm_psycopg2", mode="extended", reason=""),
            "Django ORM on psycopg2, extended",
        ),
        (LeftOut(layer="libpq", reason=""), "libpq (C)"),
        (LeftOut(layer="libpq", route="tls", reason=""), "libpq (C) · tls"),
        (LeftOut(workload="cure", layer="libpq", reason=""), "cure: libpq (C)"),
        (LeftOut(workload="cure", reason=""), "cure: all layers below the ORM"),
    ):
        assert labels.left_out_title(left) == title


def test_omitted_parts_share_their_reason() -> None:
    skipped = [
        LeftOut(layer="libpq", reason="not built"),
        LeftOut(layer="asyncpg", reason="not installed"),
        LeftOut(layer="pgbench", reason="not built"),
    ]
    assert labels.reasons(skipped) == {"not built": ["libpq (C)", "pgbench"], "not installed": ["asyncpg"]}
