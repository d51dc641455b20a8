"""Little's law and the utilisation law, kept and broken."""

from dataclasses import replace

import numpy as np
import pytest

from pgperf.analysis.laws import TOLERANCE, checks, little, utilisation
from pgperf.records import VariantBlock

from .rows import row
from .synthetic import piece, timed_block, variant

#: 200 ms of operations of 100 µs by each of so many clients.


def block(clients: int, busy: float = 1.0) -> VariantBlock:
    """A window of 200 ms in which each client works for that share of the time, 100 µs an operation."""
    ops = round(2000 * clients * busy)
    of = variant(clients=clients)
    one = timed_block(of, 0, np.full(ops, 100_000, dtype=np.uint64))
    return replace(one, slices=(piece(100.0, 0, ops, window_ns=200_000_000),))


def test_throughput_and_time_account_for_all_clients() -> None:
    found = little([block(8), block(8)], 8)
    assert found["accounted"] == pytest.approx(8.0)
    assert found["between_us"] == pytest.approx(0.0)
    assert found["holds"] is True


@pytest.mark.parametrize(("busy", "holds"), [(0.96, True), (0.94, False), (1.04, True), (1.06, False)])
def test_littles_law_holds_within_a_twentieth(busy: float, holds: bool) -> None:
    found = little([block(4, busy)], 4)
    assert found["holds"] is holds
    assert found["between_us"] == pytest.approx(100.0 / busy - 100.0, rel=0.01)
    assert TOLERANCE == 0.05


def test_nothing_measured_says_nothing() -> None:
    assert little([], 4) == {"clients": 4, "accounted": None, "between_us": None, "holds": None}
    assert {each["holds"] for each in utilisation([], row()).values()} == {None}


def booked(clients: float, server: float = 0.1) -> dict[str, dict[str, object]]:
    """4 clients with 20,000 operations a second of 20 µs of client CPU and 10 µs of the server's: 0.4 and 0.2."""
    given_row = row(
        200.0,
        client=20.0,
        server=10.0,
        clients=4,
        share={"clients": clients, "server": server, "pooler": 0.0},
    )
    given_row["books"]["elapsed_s"] = 0.1 + 50 / 20_000
    return utilisation([replace(block(4), slices=(piece(200.0, 0, 2000, lead_in_ops=50),))], given_row)


def test_what_operations_take_is_what_the_host_s_books_have() -> None:
    found = booked(0.2)
    assert found["clients"]["law"] == pytest.approx(0.4)
    assert found["clients"]["measured"] == pytest.approx(0.4)
    assert {role: each["holds"] for role, each in found.items()} == {
        "clients": True,
        "pooler": True,
        "server": True,
    }


@pytest.mark.parametrize(("share", "holds"), [(0.2 * 1.04, True), (0.2 * 1.08, False), (0.2 * 0.9, False)])
def test_the_utilisation_law_holds_within_a_twentieth(share: float, holds: bool) -> None:
    assert booked(share)["clients"]["holds"] is holds


def test_next_to_nothing_may_differ_by_more() -> None:
    assert booked(0.2, server=0.1)["server"]["holds"] is True
    assert booked(0.2, server=0.1 + 0.006)["server"]["holds"] is False


def test_both_are_checked() -> None:
    found = checks([block(1)], row(100.0))
    assert found["little"]["holds"] is True
    assert set(found["utilisation"]) == {"clients", "pooler", "server"}
