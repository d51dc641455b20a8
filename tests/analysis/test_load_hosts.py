"""Verdicts over several load hosts: which of them is the limit, and when nothing is withheld."""

from dataclasses import replace
from typing import Any

import pytest

from pgperf.analysis.load_hosts import CPU, NETWORK, LoadHostUse, blocks_by_number, busiest, load_hosts
from pgperf.analysis.variant_summary import VariantSummary
from pgperf.analysis.verdict import CONFIRMED, UNDECIDED, WITHDRAWN
from pgperf.analysis.verdict_kinds import confirm
from pgperf.analysis.verdict_kinds import judge as judge_summary
from tests.analysis.rows import Row, remote
from tests.analysis.test_verdict import judge

HALF = {"cpus": 4.0, "clients": 0.5, "busy": 0.5, "steal": 0.0, "network": 0.5}


def hosted(*hosts: dict[str, Any], **more: Any) -> Row:
    """A variant of 16 clients on load hosts; the server has a host of its own."""
    found = remote(211.0, clients=16, client=100.0, server=50.0, far_cpus=32, **more)
    names = "abcd"
    uses = [{"name": names[at], **HALF, **host} for at, host in enumerate(hosts)]
    found["cpu_account"] |= {"cpus": 16, "load_hosts": uses}
    found["cpu_account"]["role_cpus"] = {"clients": 16, "server": None, "pooler": None}
    return {**found, "hosts": len(hosts)}


def capacity(row: Row) -> dict[str, Any]:
    found: dict[str, Any] = judge(row)["checks"]["capacity"]
    return found


def test_nothing_is_withheld_where_the_load_hosts_have_room() -> None:
    assert capacity(hosted({}, {}, {}, {}, share={"idle": 0.5}))["withheld"] is False


@pytest.mark.parametrize(
    ("use", "why"),
    [
        ({"clients": 0.97}, "the CPUs of load host b were 97 % busy"),
        ({"network": 0.95}, "the network of load host b was 95 % busy"),
    ],
)
def test_one_load_host_is_the_limit(use: dict[str, float], why: str) -> None:
    found = capacity(hosted({}, use, {}, {}))
    assert (found["withheld"], found["where"], found["why"]) == (True, "b", why)


def test_the_clients_cpu_is_the_verdict_where_one_host_has_no_more_of_it() -> None:
    found = judge(hosted({}, {"clients": 0.97}))
    assert found["word"] == "client_cpu"
    assert "the CPUs of load host b 97 % busy" in found["evidence"]


def test_the_network_is_the_verdict_where_one_host_has_no_more_of_it() -> None:
    found = judge(hosted({}, {"network": 0.95}))
    assert (found["word"], found["certainty"]) == ("network", "likely")
    said = "16 clients, the network of load host b saturated (95 % used); of 211 µs: "
    assert found["evidence"].startswith(said)


def test_a_single_client_may_fill_the_network() -> None:
    found = judge({**hosted({"network": 0.95}), "clients": 1})
    assert found["evidence"].startswith("1 client, the network of load host a saturated (95 % used); ")


def test_used_up_cpus_come_before_a_full_network() -> None:
    assert judge(hosted({"clients": 0.97}, {"network": 0.95}))["word"] == "client_cpu"


@pytest.mark.parametrize(("times", "expected"), [(1.05, CONFIRMED), (1.7, WITHDRAWN), (1.4, UNDECIDED)])
def test_a_full_network_carries_no_more_with_twice_the_clients(times: float, expected: str) -> None:
    full = VariantSummary.from_json(hosted({"network": 0.95}, ops_per_s=1_000.0))
    own = replace(full, verdict=judge_summary(full))
    assert own.verdict
    found = confirm(own.verdict, own.verdict.intervention, own, replace(own, ops_per_s=1_000.0 * times))
    assert (own.verdict.intervention, found.outcome) == ("double_clients", expected)


def test_what_the_hypervisor_took_is_told_for_each_host() -> None:
    found = judge(hosted({}, {"steal": 0.05}, {}, {}, share={"steal": 0.0125}))
    assert "the hypervisor took 5.0 % of the load host b's CPU time (steal)" in found["grade"]["evidence"]
    assert "the host's CPU time" not in found["grade"]["evidence"]


def test_programs_on_the_owner_s_host_are_not_behind_the_run_queue_of_load_hosts() -> None:
    seen = {"processes": [{"role": "other", "name": "cc1", "pid": 41, "cpu_percent": 90.0}]}
    crowded: dict[str, Any] = {"queue": {"client": 12.0}, "share": {"other": 0.2}}
    for alone, programs in ((remote(**crowded), ("cc1 (pid 41)",)), (hosted({}, {}, **crowded), ())):
        (found,) = judge_summary(VariantSummary.from_json({**alone, "top": seen})).grade.disturbances
        assert (found.source, found.programs) == ("run_queue", programs)


@pytest.mark.parametrize(("machine_cpus", "us"), [(None, 42.2), (8.0, 84.4)])
def test_steal_is_of_all_cpus_of_a_host(machine_cpus: float | None, us: float) -> None:
    """Two hosts lose 5 % each, with 4 CPUs for their clients: on all of the machine, or half of it."""
    found = judge_summary(
        VariantSummary.from_json(hosted(*[{"steal": 0.05, "machine_cpus": machine_cpus}] * 2))
    )
    stolen = [each.us for each in found.grade.disturbances if each.source == "steal"]
    assert sum(each or 0.0 for each in stolen) == pytest.approx(us)


def test_shares_over_blocks_are_of_what_each_host_had() -> None:
    block = {
        "name": "a", "cpus": 4, "client_cpus": 2, "network_mbit": 1_000, "elapsed_ns": 10**9, "client_ns": 10**9,
        "host_ns": 2 * 10**9, "steal_ns": 4 * 10**8, "network_bytes": 12_500_000,
    }  # fmt: skip
    (found,) = load_hosts([[block], None, [{**block, "client_ns": 2 * 10**9}]])
    assert found == LoadHostUse("a", 2, clients=0.75, busy=0.5, steal=0.1, network=0.1, machine_cpus=4)


def test_what_a_block_does_not_know_is_unknown() -> None:
    block = {
        "name": "a", "cpus": 4, "client_cpus": 2, "network_mbit": None, "elapsed_ns": 10**9, "client_ns": None,
        "host_ns": 10**9, "steal_ns": 0, "network_bytes": 1,
    }  # fmt: skip
    (found,) = load_hosts([[block]])
    assert (found.clients, found.network, found.steal) == (None, None, 0.0)


def test_blocks_are_counted_by_how_many_load_hosts_they_had() -> None:
    """Block 2 lost one between its two cohorts; block 4 was not accounted."""
    assert blocks_by_number([(1, 4), (1, 4), (2, 3), (2, 4), (3, 3), (4, 0)]) == {"3": 2, "4": 1}
    assert blocks_by_number([(1, 0)]) == {}


def test_the_busiest_host_of_a_resource() -> None:
    hosts = [LoadHostUse("a", 2, clients=0.9, network=0.1), LoadHostUse("b", 2, clients=0.1, network=None)]
    assert [found.name for what in (CPU, NETWORK) if (found := busiest(hosts, what))] == ["a", "a"]
    assert busiest([], CPU) is None
