"""CPU accounts add up: whatever the parts, known shares of the CPUs sum to 1, and nothing is
counted twice.
"""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgperf.analysis import cpu_accounting, cpu_per_operation
from pgperf.analysis.cpu_account import CpuAccount
from pgperf.analysis.cpu_accounting import SHARES, Account
from pgperf.core.records import VariantBlock

from .synthetic import piece, variant

MS = 1_000_000
#: 100 ms on two CPUs: 40 clients, 30 server, 10 pooler, 5 auxiliaries, 1 runner, 24 more; 90
#: idle.
SLICE = {
    "elapsed_ns": 100 * MS, "host_ns": 110 * MS, "client_ns": 40 * MS, "server_ns": 30 * MS, "pooler_ns": 10 * MS,
    "auxiliary_ns": 5 * MS, "runner_ns": 1 * MS, "iowait_ns": 10 * MS, "steal_ns": 20 * MS, "client_wait_ns": 3 * MS,
    "client_busiest_ns": 25 * MS, "server_wait_ns": 2 * MS, "server_busiest_ns": 30 * MS, "pooler_wait_ns": 1 * MS,
    "lead_in_ops": 200, "ops": 800,
}  # fmt: skip
#: Of 30 ms that were not ours, 20 were those of processes that could be seen.
CENSUS = {
    "cpus": 2, "source": "cgroup", "elapsed_ns": 500 * MS,
    "host_ns": 430 * MS, "ours_ns": 400 * MS, "others_ns": 20 * MS,
    "ticks_and_switches": {
        "client": {"user": 30, "system": 10, "voluntary": 2000, "involuntary": 10},
        "server": {"user": 0, "system": 0, "voluntary": 1000, "involuntary": 0},
        "pooler": None,
    },
}  # fmt: skip


def block(census: dict[str, Any] | None = None, *slices: dict[str, Any]) -> list[VariantBlock]:
    pieces = tuple(piece(100, at, **{**SLICE, **fields}) for at, fields in enumerate(slices or ({},)))
    return [
        VariantBlock(
            variant=variant(), cohort=0, block=0, slices=pieces, cpu_account={**CENSUS, **(census or {})}
        )
    ]


def cpu_account(blocks: list[VariantBlock]) -> dict[str, Any]:
    """The account as plain JSON; {} without one."""
    found = cpu_accounting.cpu_account(blocks)
    return found.to_json() if found else {}


def test_every_part_has_its_share_and_they_sum_to_one() -> None:
    share = cpu_account(block())["share"]
    assert share == pytest.approx(
        {
            "clients": 0.20, "proxy": 0.0, "web": 0.0, "pooler": 0.05, "server": 0.15, "auxiliaries": 0.025,
            "other": 0.085,
            "unattributed": 0.04, "idle": 0.30, "iowait": 0.05, "steal": 0.10,
        }
    )  # fmt: skip
    assert sum(share.values()) == pytest.approx(1)


def test_the_rest_is_in_the_operations_time_too() -> None:
    us = cpu_per_operation.per_op_us(block())
    assert us.auxiliaries == 5.0
    assert us.other == pytest.approx(1 + 24 * 2 / 3, abs=0.01)
    assert us.unattributed == pytest.approx(24 / 3, abs=0.01)


def test_the_mean_time_is_that_of_the_windows_of_each_connection() -> None:
    """Not of the account, which also has the time before the start and that of the replies."""
    (one,) = block({}, {"window_ns": 60 * MS}, {"window_ns": 100 * MS})
    assert cpu_account([one])["mean_us_per_op"] == pytest.approx(100.0)
    three = replace(one, variant=replace(one.variant, clients=3))
    assert cpu_account([three])["mean_us_per_op"] == pytest.approx(300.0)


def test_blocks_count_with_the_cpus_that_they_had() -> None:
    """The last of three blocks ran on half of the CPUs: the load host of the others was lost."""
    quiet = {
        "host_ns": 30 * MS,
        "client_ns": 20 * MS,
        "server_ns": 0,
        "pooler_ns": 0,
        "iowait_ns": 0,
        "steal_ns": 0,
    }
    both, one = ({"cpus": cpus, "role_cpus": {"clients": clients}} for cpus, clients in ((4, 3.0), (2, 1.5)))
    found = cpu_account([*block(both, quiet), *block(both, quiet), *block(one, quiet)])
    assert found["cpus"] == pytest.approx(10 / 3)
    assert found["role_cpus"]["clients"] == pytest.approx(2.5)
    assert found["share"]["clients"] == pytest.approx(60 / 1000)
    assert sum(each or 0 for each in found["share"].values()) == pytest.approx(1)


def test_blocks_are_counted_by_the_load_hosts_that_they_had() -> None:
    of_one = {
        "cpus": 2, "client_cpus": 2, "network_mbit": None, "elapsed_ns": MS, "client_ns": MS, "host_ns": MS,
        "steal_ns": 0, "network_bytes": 0,
    }  # fmt: skip
    both, one = ({"load_hosts": [{**of_one, "name": name} for name in names]} for names in ("ab", "a"))
    blocks = [replace(*block(census), block=at) for at, census in enumerate((both, both, one))]
    assert cpu_account(blocks)["load_host_blocks"] == {"1": 1, "2": 2}
    assert cpu_account(block())["load_host_blocks"] == {}


def test_waits_switches_and_the_busiest() -> None:
    found = cpu_account(block())
    assert (found["cpus"], found["source"]) == (2, "cgroup")
    assert found["elapsed_s"] == 0.1
    assert found["runner"] == 0.005
    assert found["wait_us_per_op"] == {"client": 3.0, "proxy": 0.0, "web": 0.0, "pooler": 1.0, "server": 2.0}
    assert found["busiest"] == {"client": 0.25, "proxy": 0.0, "web": 0.0, "pooler": 0.1, "server": 0.3}
    assert found["switches_per_op"] == {
        "client_voluntary": 2.0, "client_involuntary": 0.01, "server_voluntary": 1.0, "server_involuntary": 0.0,
        "pooler_voluntary": None, "pooler_involuntary": None, "proxy_voluntary": None,
        "proxy_involuntary": None, "web_voluntary": None, "web_involuntary": None,
    }  # fmt: skip
    assert found["system_share"] == {
        "client": 0.25, "server": None, "pooler": None, "proxy": None, "web": None,
    }  # fmt: skip


def test_short_lived_processes_are_known_if_every_slice_has_them() -> None:
    assert cpu_account(block({"short_lived_ns": 3 * MS}))["short_lived_us_per_op"] == 3.0
    assert cpu_account(block({"short_lived_ns": 0}))["short_lived_us_per_op"] == 0.0
    assert cpu_account(block())["short_lived_us_per_op"] is None
    assert cpu_account([*block({"short_lived_ns": 3 * MS}), *block()])["short_lived_us_per_op"] is None


def test_counts_of_whole_blocks_are_of_the_slices_that_do_not_count_too() -> None:
    """Half of the requests were in slices with a failure; the processes of both were counted."""
    (own,) = block({"short_lived_ns": 3 * MS, "throttled_ns": {"client": 6 * MS}})
    whole = replace(own, slices=own.slices * 2)
    found = cpu_accounting.cpu_account([own], [whole])
    assert found is not None
    assert found.short_lived_us_per_op == 1.5
    assert found.throttled_us_per_op["client"] == 3.0
    assert found.switches_per_op["client_voluntary"] == 1.0
    assert found.system_share["client"] == 0.25


def test_the_cpu_time_of_an_invisible_server_is_unknown() -> None:
    unseen = {"server_ns": None, "server_wait_ns": None, "server_busiest_ns": None, "auxiliary_ns": None}
    found = cpu_account(block(None, unseen))
    assert found["share"]["server"] is found["share"]["auxiliaries"] is found["busiest"]["server"] is None
    assert found["wait_us_per_op"]["server"] is None
    assert sum(share for share in found["share"].values() if share is not None) == pytest.approx(1)


def test_a_server_on_another_host_has_shares_of_that_host() -> None:
    far = {
        "cpus": 4, "roles": {"server": 30 * MS, "auxiliaries": 5 * MS}, "elapsed_ns": 100 * MS,
        "busy_ns": 60 * MS, "iowait_ns": 0, "steal_ns": 4 * MS,
    }  # fmt: skip
    found = cpu_account(block({"server_host": far}))
    here, there = found["share"], found["server_host"]
    assert here["server"] is here["auxiliaries"] is None
    assert here["other"] + here["unattributed"] == pytest.approx(0.3)  # 110 busy, 50 clients and pooler
    assert sum(share for share in here.values() if share is not None) == pytest.approx(1)
    assert (there["cpus"], there["elapsed_s"]) == (4, 0.1)
    assert there["share"] == pytest.approx(
        {
            "clients": None, "proxy": None, "web": None, "pooler": None, "server": 0.075, "auxiliaries": 0.0125,
            "other": None,
            "unattributed": 0.0625, "idle": 0.84, "iowait": 0.0, "steal": 0.01,
        }
    )  # fmt: skip
    assert cpu_account(block())["server_host"] is None
    assert cpu_account(block({"server_host": {**far, "elapsed_ns": 0}}))["server_host"] is None


def test_slices_with_an_invisible_process_do_not_count() -> None:
    assert cpu_account(block(None, {}, {"server_ns": None}))["share"] == cpu_account(block())["share"]
    assert cpu_account(block(None, {}, {"host_ns": None}))["share"] == cpu_account(block())["share"]


def test_without_the_hosts_account_the_rest_is_unknown() -> None:
    found = cpu_account(block({"host_ns": None, "source": "idle"}, {"host_ns": None}))
    assert found["share"]["clients"] == 0.2
    assert [found["share"][name] for name in ("other", "unattributed", "idle")] == [None] * 3


def test_slices_without_accounts_give_no_account() -> None:
    assert cpu_account([]) == {}
    assert cpu_account([VariantBlock(variant=variant(), cohort=0, block=0, slices=(piece(100),))]) == {}
    assert cpu_account([VariantBlock(variant=variant(), cohort=0, block=0, slices=block()[0].slices)]) == {}


def test_the_role_cpus_are_those_of_the_last_block() -> None:
    kept = {"clients": 1, "server": None, "pooler": 1}
    assert cpu_account([*block(), *block({"role_cpus": kept})])["role_cpus"] == kept
    beside = {**kept, "pooler_beside_server": True, "database": 4}
    assert cpu_account([*block(), *block({"role_cpus": beside})])["role_cpus"] == beside


@pytest.mark.parametrize(
    ("census", "other"),
    [
        ({"others_ns": 60 * MS}, 24),  # whole processes at the edges may hold a tick more than the total
        ({"host_ns": 400 * MS}, 24),
        ({"others_ns": 0}, 0),
    ],
)
def test_process_cpu_divides_the_rest(census: dict[str, Any], other: float) -> None:
    account = Account.of(block(census))
    assert account is not None
    assert account.spent_ns["other"] == (1 + other) * MS
    assert account.spent_ns["unattributed"] == (24 - other) * MS


def test_others_are_told_by_side_where_every_block_tells_it() -> None:
    """Of 30 ms of others in each block, at most 3 ms were on the clients' CPUs."""
    told = {"others_by_side": {"clients": 3 * MS, "server": 40 * MS}}
    stored = cpu_account([*block(told), *block(told)])
    assert stored["others_by_side"] == {"clients": pytest.approx(0.1), "server": 1.0}
    assert CpuAccount.from_json(stored).others_by_side == stored["others_by_side"]  # type: ignore[union-attr]
    for older in (block(), block({**told, "host_ns": None})):
        assert "others_by_side" not in cpu_account([*block(told), *older])


def test_without_process_cpu_the_rest_is_unattributed() -> None:
    share = cpu_account(block({"host_ns": None}))["share"]
    assert share["other"] is None
    assert share["unattributed"] == pytest.approx(0.125)  # 24 ms, and the process that measures
    assert sum(each for each in share.values() if each is not None) == pytest.approx(1)
    assert cpu_account([*block({"host_ns": None}), *block()])["share"] == pytest.approx(
        cpu_account(block())["share"]
    )


_ns = st.integers(0, 10**9)
_maybe = _ns | st.none()


@given(
    st.fixed_dictionaries(
        {name: _maybe for name in SLICE if name.endswith("_ns") and name != "elapsed_ns"}
        | {"elapsed_ns": st.integers(1, 10**9)}
    ),
    st.fixed_dictionaries({"host_ns": _maybe, "ours_ns": _ns, "others_ns": _ns}),
)
def test_shares_close_whatever_was_read(fields: dict[str, Any], census: dict[str, Any]) -> None:
    """Ticks and nanoseconds do not agree to the last digit: no share leaves 0 to 1 for that, and
    none is lost.
    """
    share = cpu_account(block(census, fields))["share"]
    known = [value for value in share.values() if value is not None]
    assert set(share) == set(SHARES)
    assert all(0 <= value <= 1 for value in known)
    if fields["host_ns"] is not None:
        assert sum(known) == pytest.approx(1)
    assert [share[role] is None for role in ("pooler", "server")] == [
        fields[name] is None for name in ("pooler_ns", "server_ns")
    ]


def program(pid: int, name: str, cpu_percent: float) -> dict[str, Any]:
    return {"role": "other", "pid": pid, "name": name, "user": "root", "cpu_percent": cpu_percent}


def test_the_busiest_other_programs_are_those_of_all_blocks() -> None:
    """Each with its mean over all of the time: 300 ms that saw two, and 100 ms that saw one."""
    first = block({"elapsed_ns": 300 * MS, "programs": [program(1, "backup", 40.0), program(2, "cron", 8.0)]})
    second = block({"elapsed_ns": 100 * MS, "programs": [program(2, "cron", 96.0)]})
    older = block()  # by a version that did not look
    found = cpu_account([*first, *second, *older])
    assert found["programs"] == [program(1, "backup", 30.0), program(2, "cron", 30.0)]
    assert "programs" not in cpu_account(older)
    stored = CpuAccount.from_json(found)
    assert stored
    assert stored.to_json() == found
