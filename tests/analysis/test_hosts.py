"""The CPUs of each role, on one host and on two."""

from typing import Any

import pytest

from pgperf.analysis.hosts import HostRoles, Side, hosts, sides
from pgperf.analysis.time_breakdown import TimeBreakdown

from .rows import Row, remote, row, summary


def sides_of(given_row: Row) -> dict[str, Side]:
    found = summary(given_row)
    return sides(found, TimeBreakdown.of(found).cpu)


def with_seats(given_row: Row, **seats: int | None) -> Row:
    return given_row | {"cpu_account": given_row["cpu_account"] | {"role_cpus": seats}}


def hosts_of(given_row: Row) -> tuple[HostRoles, ...]:
    found = summary(given_row)
    return hosts(found, TimeBreakdown.of(found).cpu)


ALL = ("client", "pooler", "server")


@pytest.mark.parametrize(
    ("placement", "cpus", "expected"),
    [
        ("apart", 2, {"clients": Side(ALL[:2], 1), "server": Side(ALL[2:], 1, host=2)}),
        ("apart", 5, {"clients": Side(ALL[:2], 2), "server": Side(ALL[2:], 3, host=5)}),
        ("together", 8, {"host": Side(ALL, 1, host=8)}),
        ("together", 1, {"host": Side(ALL, 1)}),
        ("scheduler", 8, {"host": Side(ALL, 8)}),
        ("scheduler", None, {}),
    ],
)
def test_on_one_host_placement_says_who_shares_cpus(
    placement: str, cpus: int | None, expected: dict[str, Side]
) -> None:
    assert sides_of(row(placement=placement, cpus=cpus)) == expected


def test_a_worker_s_own_cpus_are_what_its_clients_have() -> None:
    apart = with_seats(row(cpus=8), clients=1, server=2)
    assert sides_of(apart) == {"clients": Side(ALL[:2], 1), "server": Side(ALL[2:], 2, host=8)}
    alone = with_seats(row(cpus=8, placement="scheduler"), clients=1, server=None)
    assert sides_of(alone) == {"host": Side(ALL, 8), "clients": Side(("client",), 1)}
    assert sides_of(with_seats(row(cpus=8, placement="scheduler"), clients=8)) == {"host": Side(ALL, 8)}
    far = with_seats(remote(cpus=8), clients=1, server=None)
    assert sides_of(far)["clients"] == Side(("client",), 1)
    assert sides_of(far)["server"] == Side(("server",), 8)


def test_a_pooler_that_web_servers_reach_too_shares_the_servers_cpus() -> None:
    shared = with_seats(row(cpus=8), clients=4, server=4, pooler_beside_server=True)
    assert sides_of(shared) == {"clients": Side(ALL[:1], 4), "server": Side(ALL[1:], 4, host=8)}


@pytest.mark.parametrize(
    ("far", "expected"),
    [
        (remote(), {"clients": Side(ALL[:2], 2), "server": Side(("server",), 8)}),
        (
            remote(pooled_there=True, pooler=5.0),
            {"clients": Side(("client",), 2), "server": Side(ALL[1:], 8)},
        ),
        (remote(agent=False), {"clients": Side(ALL[:2], 2), "server": Side(("server",), None)}),
    ],
)
def test_a_server_elsewhere_has_cpus_of_its_own(far: Row, expected: dict[str, Side]) -> None:
    assert sides_of(far) == expected


def test_a_server_whose_host_was_never_seen_whole_is_elsewhere_all_the_same() -> None:
    far = remote()
    far["cpu_account"]["server_host"] = None
    assert sides_of(far)["server"] == Side(("server",), None)
    (here,) = hosts_of(far)
    assert (here.roles, here.unseen) == (("client", "pooler"), ())


def other_cpus(given_row: Row) -> list[float | None]:
    return [host.other_cpus for host in hosts_of(given_row)]


@pytest.mark.parametrize(
    ("share", "expected"),
    [
        ({"other": 0.2, "unattributed": 0.1}, 0.6),
        ({"other": None, "unattributed": 0.1}, 0.2),
        ({"other": None, "unattributed": None}, None),
    ],
)
def test_other_processes_are_all_unknown_processes(
    share: dict[str, float | None], expected: float | None
) -> None:
    assert other_cpus(row(share=share)) == [pytest.approx(expected) if expected else None]


def test_who_measures_and_its_relay_are_no_other_cpus() -> None:
    given_row = row(share={"other": 0.2})
    given_row["cpu_account"]["runner"] = 0.15
    assert other_cpus(given_row) == [pytest.approx(0.1)]
    given_row["cpu_account"]["runner"] = 0.3
    assert other_cpus(given_row) == [0.0]


@pytest.mark.parametrize("unseen", ["pooler", "server"])
def test_an_invisible_role_makes_the_other_cpus_unknown(unseen: str) -> None:
    lacking: dict[str, Any] = {unseen: None}
    (here,) = hosts_of(row(share={"other": 0.2}, **lacking))
    assert (here.others, here.other_cpus, here.unseen) == (pytest.approx(0.4), None, (unseen,))


def test_each_host_has_its_own_other_processes_and_steal_time() -> None:
    far = remote(share={"other": 0.1, "steal": 0.01}, there={"unattributed": 0.05, "steal": 0.03})
    here, there = hosts_of(far)
    assert (here.roles, here.other_cpus, here.steal) == (("client", "pooler"), pytest.approx(0.2), 0.01)
    assert (there.roles, there.other_cpus, there.steal) == (("server",), pytest.approx(0.4), 0.03)
