"""Little's law and the utilisation law, kept and broken."""

from dataclasses import replace

import numpy as np
import pytest

from pgperf.analysis.consistency_checks import (
    TOLERANCE,
    LittlesLaw,
    UtilisationLaw,
    checks,
    little,
    utilisation,
    why_unchecked,
)
from pgperf.core.records import SliceRecord, VariantBlock

from .rows import Row, row, summary
from .synthetic import piece, timed_block, variant

#: 200 ms of operations of 100 µs by each of so many clients.


def block(clients: int, busy: float = 1.0) -> VariantBlock:
    """A window of 200 ms in which each client works for that share of the time, 100 µs an
    operation.
    """
    ops = round(2000 * clients * busy)
    of = variant(clients=clients)
    one = timed_block(of, 0, np.full(ops, 100_000, dtype=np.uint64))
    return replace(one, slices=(piece(100.0, 0, ops, window_ns=200_000_000),))


def test_throughput_and_time_account_for_all_clients() -> None:
    found = little([block(8, 0.999), block(8, 0.999)], 8)
    assert found.accounted == pytest.approx(8.0, rel=0.002)
    assert found.between_us == pytest.approx(0.1, rel=0.01)
    assert found.holds is True


def test_a_window_made_of_its_operations_tells_nothing() -> None:
    found = little([block(8), block(8)], 8)
    assert (found.holds, found.accounted, found.between_us) == (None, 8.0, None)
    assert found.why.startswith("not checked: the window of a slice by count")


def test_a_timed_window_that_fits_by_chance_is_checked() -> None:
    found = little([block(4, 0.99), block(4, 1.01)], 4)
    assert (found.accounted, found.holds) == (4.0, True)


def test_of_one_client_it_is_true_by_construction_and_not_checked() -> None:
    found = little([block(1)], 1)
    assert (found.holds, found.accounted, found.between_us) == (None, None, None)
    assert found.why.startswith("not checked: the window of one client is the sum")


@pytest.mark.parametrize(("busy", "holds"), [(0.96, True), (0.94, False), (1.04, True), (1.06, False)])
def test_littles_law_holds_within_a_twentieth(busy: float, holds: bool) -> None:
    found = little([block(4, busy)], 4)
    assert found.holds is holds
    assert found.between_us == pytest.approx(100.0 / busy - 100.0, rel=0.01)
    assert TOLERANCE == 0.05


def long_operations(slices: int, accounted: float) -> VariantBlock:
    """10 operations of each of 4 clients in each window, whose times add up to that many clients."""
    ns = round(20_000_000 * accounted / 4)
    one = timed_block(variant(clients=4), 0, np.full(40 * slices, ns, dtype=np.uint64))
    return replace(one, slices=(piece(ns / 1000, 0, 40, window_ns=200_000_000),) * slices)


@pytest.mark.parametrize(
    ("slices", "accounted", "holds"), [(1, 4.5, True), (1, 4.7, False), (25, 4.25, True), (25, 4.35, False)]
)
def test_a_window_may_cut_one_operation_of_each_client(slices: int, accounted: float, holds: bool) -> None:
    assert little([long_operations(slices, accounted)], 4).holds is holds


def test_without_measurements_nothing_is_known() -> None:
    assert little([], 4) == LittlesLaw(4, accounted=None, between_us=None, holds=None)
    assert {each.holds for each in laws([], row(share={"clients": None})).values()} == {None}


def laws(blocks: list[VariantBlock], given_row: Row) -> dict[str, UtilisationLaw]:
    variant = summary(given_row)
    return utilisation(blocks, variant.cpu_us_per_op, variant.cpu_account)


def accounted(
    clients: float, client_us: float = 20.0, *more: SliceRecord, seconds: float = 10.0
) -> dict[str, UtilisationLaw]:
    """4 clients, 20,000 operations a second of 20 µs each: 0.4 CPUs.

    `clients`: their share of both in the account. `seconds`: the length of the slice.
    """
    given_row = row(
        200.0, client=client_us, clients=4, share={"clients": clients, "server": 0.1, "pooler": 0.0}
    )
    given_row["cpu_account"]["elapsed_s"] = seconds
    ops = round(20_000 * seconds)
    own = piece(200.0, 0, ops - 50, lead_in_ops=50, elapsed_ns=round(seconds * 1e9))
    return laws([replace(block(4), slices=(own, *more))], given_row)


def test_throughput_predicts_the_measured_cpu_time() -> None:
    found = accounted(0.2)["clients"]
    assert found == UtilisationLaw(pytest.approx(0.4), pytest.approx(0.4), holds=True)


@pytest.mark.parametrize(("share", "holds"), [(0.2 * 1.04, True), (0.2 * 1.08, False), (0.2 * 0.9, False)])
def test_the_utilisation_law_holds_within_a_twentieth(share: float, holds: bool) -> None:
    assert accounted(share)["clients"].holds is holds


def test_slices_without_an_account_are_on_neither_side() -> None:
    assert accounted(0.2, 20.0, piece(200.0, 1, 2000)) == accounted(0.2)


def test_next_to_nothing_may_differ_by_more() -> None:
    assert accounted(0.5 * (0.004 + 0.0099), 0.2)["clients"].holds is True
    assert accounted(0.5 * (0.004 + 0.0115), 0.2)["clients"].holds is False


@pytest.mark.parametrize(("busy", "holds"), [(1.05, True), (1.06, False), (0.385, True), (0.375, False)])
def test_a_client_works_before_and_after_each_slice(busy: float, holds: bool) -> None:
    """The scheduler counts 3 ms for each of 4 processes beside what they count: of 20 ms, 0.6 CPUs."""
    assert accounted(busy / 2, seconds=0.02)["clients"].holds is holds


def test_a_prediction_stands_alone_where_the_account_lacks_the_clients() -> None:
    given = row(200.0, client=20.0, clients=4, share={"clients": None, "server": 0.1, "pooler": 0.0})
    given["cpu_account"]["elapsed_s"] = 1.0
    own = piece(200.0, 0, 19_950, lead_in_ops=50, elapsed_ns=1_000_000_000)
    found = laws([replace(block(4), slices=(own,))], given)["clients"]
    assert found == UtilisationLaw(pytest.approx(0.4), None, None)


def test_a_role_with_one_account_only_is_not_checked() -> None:
    found = accounted(0.2)
    for role, busy in {"pooler": 0.0, "server": 0.2}.items():
        assert found[role] == UtilisationLaw(None, pytest.approx(busy), None)
        assert why_unchecked(role) == "not checked: one account only"


def test_both_are_checked() -> None:
    variant = summary(row(100.0, clients=2))
    found = checks([block(2, 0.999)], 2, variant.cpu_us_per_op, variant.cpu_account)
    assert found.little is not None
    assert found.little.holds is True
    assert set(found.utilisation) == {"clients", "pooler", "server"}
