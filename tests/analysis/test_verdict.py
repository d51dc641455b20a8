"""Each rule from both sides of its threshold, and that nothing is said of what is not known."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgperf.analysis import verdict_kinds
from pgperf.analysis.consistency_checks import Checks, LittlesLaw, UtilisationLaw
from pgperf.analysis.time_breakdown import TimeBreakdown
from pgperf.analysis.verdict import Verdict
from pgperf.reports.verdicts import verdict_json

from .rows import Row, remote, row, summary


def judge(given_row: Row) -> dict[str, Any]:
    """The verdict as readers see it."""
    return verdict_json(verdict_kinds.judge(summary(given_row)))


def word(given_row: Row) -> str:
    return str(judge(given_row)["word"])


def test_the_largest_share_of_one_client_s_time_in_words_and_numbers() -> None:
    found = judge(row())
    assert (found["word"], found["certainty"]) == ("client_cpu", "likely")
    assert found["evidence"] == "client CPU: 165 of 211 µs; network and wake-up 25 µs, server 21 µs"
    assert found["numbers"]["shares"]["client"] == pytest.approx(165 / 211)
    assert found["intervention"] == "lower_layer"
    assert found["missing"] == []


def test_a_wait_for_a_cpu_is_said_from_a_hundredth_of_the_time_on() -> None:
    assert "queue" not in judge(row(queue={"client": 2.0}))["evidence"]
    said = "client CPU: 165 of 211 µs and 2.2 µs in its run queue; network and wake-up 23 µs, server 21 µs"
    assert judge(row(queue={"client": 2.2}))["evidence"] == said
    both = judge(row(queue={"client": 2.2, "server": 9.0}))["evidence"]
    assert both.startswith("client CPU: 165 of 211 µs and 2.2 µs in its run queue; ")
    assert "other run queue 9.0 µs" in both


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ({"client": 90.0, "server": 60.0}, "client_cpu"),
        ({"client": 60.0, "server": 90.0}, "server_cpu"),
        ({"client": 30.0, "pooler": 90.0, "server": 60.0}, "pooler_cpu"),
        ({"client": 30.0, "server": 30.0}, "latency"),
        ({"client": 30.0, "server": 30.0, "events": {"Lock": 0.6, "CPU": 0.4}}, "server_lock"),
        ({"client": 30.0, "server": 30.0, "events": {"LWLock": 0.6, "CPU": 0.4}}, "server_lock"),
        ({"client": 30.0, "server": 30.0, "events": {"IO": 0.6, "CPU": 0.4}}, "server_io"),
        ({"client": 30.0, "server": 30.0, "events": {"Timeout": 0.6, "CPU": 0.4}}, "server_wait"),
    ],
)
def test_one_client_is_bound_by_what_it_spends_most_of_its_time_at(
    parts: dict[str, Any], expected: str
) -> None:
    given_row = row(211.0, **parts)
    given_row["diagnostics"]["backends"] = 1
    assert word(given_row) == expected


def test_a_cpu_nine_tenths_busy_is_used_up_by_several_clients() -> None:
    """8 clients, 20 µs of one server processor each time: used up at 50,000 a second."""
    full = row(160.0, client=8.0, server=20.0, clients=8, queue={"server": 130.0}, layer="libpq")
    found = judge(full)
    assert (found["word"], found["intervention"]) == ("server_cpu", "double_clients")
    assert found["evidence"] == (
        "8 clients, the server's CPUs 100 % busy; server CPU: 20 of 160 µs and 130 µs in its run queue; "
        "client 8.0 µs, network and wake-up 2.0 µs"
    )
    assert word(full | {"ops_per_s": 45_000}) == "server_cpu"
    below = judge(full | {"ops_per_s": 44_000})
    assert (below["word"], below["intervention"]) == (
        "server_cpu",
        "light_statement",
    )  # most of the time, no more
    assert "busy" not in below["evidence"]


def test_interruptions_in_the_mean_time_do_not_hide_that_a_cpu_is_used_up() -> None:
    """8 clients, 30 µs of the server's one CPU for each of 32,000 operations a second: a few long
    operations raise the mean of 250 µs, not the time of 200 µs.
    """
    full = row(200.0, client=8.0, server=30.0, clients=8, layer="libpq") | {"ops_per_s": 32_000.0}
    full["cpu_account"]["mean_us_per_op"] = 250.0
    found = judge(full)
    assert found["numbers"]["utilisation"]["server"] == pytest.approx(0.96)
    assert found["word"] == "server_cpu"
    assert "the server's CPUs 96 % busy" in found["evidence"]


def test_nothing_is_measured_where_each_slice_had_a_failed_request() -> None:
    failed = row(None, client=None, layer="http") | {"http": {"requests": 50, "errors": {"status 502": 9}}}
    found = judge(failed)
    assert (found["word"], found["missing"]) == ("unknown", [])
    assert found["evidence"].startswith("each slice had a failed request")
    assert judge(failed | {"http": {"requests": 50}})["missing"] == ["time per operation", "client CPU"]


def test_the_one_cpu_that_all_roles_share_is_not_the_whole_host() -> None:
    found = judge(row(160.0, client=10.0, server=9.0, clients=8, cpus=8, placement="together", layer="libpq"))
    assert "8 clients, the one CPU that all share 95 % busy" in found["evidence"]


def test_the_wait_for_the_interpreter_is_no_rival_of_the_client_that_it_is_a_part_of() -> None:
    """The client has 267 of 470 µs with that wait, and the server and the network have less."""
    given_row = row(470.0, client=40.0, server=30.0, **WORKERS) | {"ops_per_s": 1e7 / 470.0}
    found = verdict_kinds.judge(summary(given_row), by_block=[TimeBreakdown.of(summary(given_row))] * 2)
    assert found.word == "client_cpu"
    assert found.lead is not None
    assert found.lead.runner_up == "latency"
    assert found.lead.us == pytest.approx(
        found.numbers.parts_us["client"]
        + found.numbers.parts_us["interpreter"]
        - found.numbers.parts_us["latency"]
    )


@pytest.mark.parametrize(("layer", "expected"), [("libpq", "add_distance"), ("http", "double_clients")])
def test_a_long_wait_has_a_test_over_http_too(layer: str, expected: str) -> None:
    far = row(5000.0, client=95.0, server=30.0, clients=8, placement="scheduler", cpus=8, layer=layer)
    assert (judge(far)["word"], judge(far)["intervention"]) == ("latency", expected)


def test_clients_and_pooler_share_their_cpus_and_the_slower_of_them_is_named() -> None:
    shared = {"clients": 8, "queue": {"client": 40.0, "pooler": 90.0}, "layer": "libpq", "route": "pgbouncer"}
    assert word(row(180.0, client=8.0, pooler=14.0, server=10.0, **shared)) == "pooler_cpu"
    shared["queue"] = {"client": 100.0, "pooler": 20.0}
    assert word(row(180.0, client=14.0, pooler=8.0, server=10.0, **shared)) == "client_cpu"


WORKERS = {"clients": 1, "workers": 10, "placement": "scheduler", "cpus": 8, "layer": "psycopg"}


def test_workers_that_use_up_the_one_cpu_of_their_process_wait_for_its_interpreter() -> None:
    """10,000 operations per second, 95 µs of client CPU each, keep one of 8 CPUs busy."""
    found = judge(row(1000.0, client=95.0, server=30.0, **WORKERS) | {"ops_per_s": 10_000.0})
    assert (found["word"], found["intervention"]) == ("interpreter", "processes")
    assert found["evidence"] == (
        "10 workers in a process, one of which works 95 % of the time; waiting for the GIL or event loop:"
        " 855 of 1,000 µs; client 95 µs, server 30 µs, network and wake-up 20 µs"
    )
    assert (found["checks"]["capacity"]["withheld"], found["checks"]["capacity"]["busy"]) == (
        True,
        "interpreter",
    )


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"workers": 1, "clients": 10}, "latency"),  # processes of their own
        ({"placement": "apart", "cpus": 2}, "client_cpu"),  # the clients' only CPU is used up
    ],
)
def test_an_interpreter_bounds_workers_on_cpus_that_are_free(changes: Row, expected: str) -> None:
    given_row = row(1000.0, client=95.0, server=30.0, **{**WORKERS, **changes}) | {"ops_per_s": 10_000.0}
    assert word(given_row) == expected


def test_workers_that_wait_for_the_network_do_not_wait_for_the_interpreter() -> None:
    far = row(5000.0, client=95.0, server=30.0, **WORKERS) | {"ops_per_s": 2000.0}
    assert word(far) == "latency"
    assert judge(far)["numbers"]["parts_us"]["interpreter"] == pytest.approx(95.0 * 0.19 / 0.81)


def test_a_pooler_has_one_cpu_however_many_there_are() -> None:
    many = row(155.0, client=8.0, pooler=14.0, server=10.0, clients=10, cpus=64, queue={"pooler": 100.0})
    assert many["ops_per_s"] * 14.0 / 1e6 > 0.9
    assert "the pooler's one CPU 90 % busy" in judge(many)["evidence"]
    assert word(many) == "pooler_cpu"
    assert "busy" not in judge(many | {"ops_per_s": 64_000})["evidence"]


@pytest.mark.parametrize(
    ("placement", "cpus", "expected"),
    [("apart", 2, 1.0), ("apart", 8, 0.25), ("together", 8, 1.4), ("scheduler", 8, 0.175)],
)
def test_which_cpus_a_side_has_is_a_matter_of_placement(placement: str, cpus: int, expected: float) -> None:
    given_row = row(160.0, client=8.0, server=20.0, clients=8, placement=placement, cpus=cpus)
    used = judge(given_row)["numbers"]["utilisation"]
    assert used["server" if placement == "apart" else "host"] == pytest.approx(expected)


def test_a_worker_bound_to_one_cpu_uses_that_up() -> None:
    """8 clients on one of 8 CPUs, 20 µs for each operation: full at 50,000 a second, an eighth of the
    host.
    """
    bound = row(
        160.0, client=20.0, server=8.0, clients=8, placement="scheduler", cpus=8, queue={"client": 120.0}
    )
    assert "busy" not in judge(bound)["evidence"]
    bound["cpu_account"]["role_cpus"] = {"clients": 1, "server": None}
    found = judge(bound)
    assert found["word"] == "client_cpu"
    assert found["numbers"]["utilisation"] == {"clients": pytest.approx(1.0), "host": pytest.approx(0.175)}
    assert "the clients' CPUs 100 % busy" in found["evidence"]
    assert found["checks"]["capacity"]["withheld"] is True


def test_what_is_known_suffices_if_it_uses_the_cpus_up() -> None:
    """The auxiliaries work beside the server; unknown is not nothing."""
    full = row(160.0, client=8.0, server=20.0, clients=8, queue={"server": 130.0}, layer="libpq")
    full["cpu_us_per_op"]["auxiliaries"] = None
    assert judge(full)["numbers"]["utilisation"]["server"] == pytest.approx(1.0)
    assert "the server's CPUs 100 % busy" in judge(full)["evidence"]
    below = judge(full | {"ops_per_s": 44_000})
    assert below["numbers"]["utilisation"]["server"] is None
    assert "busy" not in below["evidence"]


def test_a_server_elsewhere_uses_up_its_own_cpus_only() -> None:
    """50,000 a second, 20 µs of the server's and 8 of the clients' each time."""
    far = {"client": 8.0, "server": 20.0, "clients": 8, "queue": {"server": 130.0}, "layer": "libpq"}
    wide = judge(remote(160.0, far_cpus=8, **far))
    assert wide["numbers"]["utilisation"] == pytest.approx({"clients": 0.2, "server": 0.125})
    assert "busy" not in wide["evidence"]
    narrow = judge(remote(160.0, far_cpus=1, **far))
    assert (narrow["word"], narrow["intervention"]) == ("server_cpu", "double_clients")
    assert "the server's CPUs 100 % busy" in narrow["evidence"]
    assert narrow["checks"]["capacity"]["withheld"] is False


def test_clients_of_a_server_elsewhere_use_up_what_is_here() -> None:
    far = {"client": 40.0, "server": 20.0, "clients": 8, "queue": {"client": 90.0}, "layer": "libpq"}
    for found in (judge(remote(160.0, **far)), judge(remote(160.0, **far, agent=False))):
        assert found["word"] == "client_cpu"
        assert found["numbers"]["utilisation"]["clients"] == pytest.approx(1.0)
        assert found["checks"]["capacity"]["withheld"] is True


def test_an_invisible_server_is_not_called_idle() -> None:
    used = judge(remote(160.0, client=8.0, clients=8, agent=False))["numbers"]["utilisation"]
    assert used == {"clients": pytest.approx(0.2), "server": None}


#: The client leads by 10 µs.
CLOSE: dict[str, Any] = {"client": 90.0, "server": 80.0}


def test_either_host_may_be_disturbed() -> None:
    """8 processors there: 2 % of them for 211 µs are 34 µs."""
    assert word(remote(**CLOSE)) == "client_cpu"
    stolen = judge(remote(there={"steal": 0.02}, **CLOSE))
    assert stolen["word"] == "disturbed"
    assert (
        "the hypervisor took 2.0 % of the server's host's CPU time (steal) (at most 34 µs)"
        in stolen["evidence"]
    )
    assert stolen["numbers"]["server_host"] == {"other_cpus": 0.0, "steal": 0.02}
    crowded = judge(remote(queue={"server": 12.0}, there={"unattributed": 0.05}, **CLOSE))
    assert crowded["word"] == "disturbed"
    assert "while other processes kept 0.4 of the server's host's CPUs busy" in crowded["evidence"]


def test_a_cpu_wait_on_one_host_is_no_disturbance_on_the_other() -> None:
    assert word(remote(queue={"client": 12.0}, there={"unattributed": 0.05}, **CLOSE)) == "client_cpu"
    assert word(remote(queue={"server": 8.0}, share={"other": 0.2}, **CLOSE)) == "client_cpu"
    assert word(remote(queue={"client": 12.0}, share={"other": 0.2}, **CLOSE)) == "disturbed"


POOL = {"wait_us_per_query": 300.0, "sv_idle_min": 0}


def pooled(**more: Any) -> Row:
    fields: dict[str, Any] = {"client": 50.0, "pooler": 14.0, "server": 30.0, "clients": 4, "cpus": 8, **more}
    given_row = row(1000.0, route="pgbouncer", **fields)
    given_row["diagnostics"]["backends"] = 1
    return given_row


def test_a_fifth_of_the_time_in_the_pool_s_queue_while_no_connection_is_free() -> None:
    found = judge(pooled(pool=POOL))
    assert (found["word"], found["intervention"]) == ("pool_queue", "bypass_pooler")
    split = "waiting for a pool connection: 300 of 1,000 µs; "
    assert found["evidence"].startswith(f"no server connection free; {split}")
    assert word(pooled(pool=POOL | {"wait_us_per_query": 200.0})) == "pool_queue"
    assert word(pooled(pool=POOL | {"wait_us_per_query": 199.0})) == "latency"
    assert word(pooled(pool=POOL | {"sv_idle_min": 1})) == "latency"
    assert word(pooled(pool=POOL, clients=1)) == "latency"


def test_a_pool_s_queue_that_is_most_of_the_time_needs_no_other_sign() -> None:
    assert word(pooled(pool={"wait_us_per_query": 600.0, "sv_idle_min": None})) == "pool_queue"


def test_waiting_for_a_cpu_that_others_use_withdraws_a_word_that_it_could_change() -> None:
    crowded = {"queue": {"client": 12.0}, "share": {"other": 0.2}, **CLOSE}
    found = judge(row(**crowded))
    assert (found["word"], found["certainty"], found["intervention"]) == ("disturbed", None, "")
    assert found["evidence"].startswith(
        "5.7 % of the time in the run queue, while other processes kept 0.4 of the host's CPUs busy "
        "(at most 12 µs); of 211 µs"
    )
    assert word(row(**(crowded | {"queue": {"client": 10.0}}))) == "client_cpu"
    assert word(row(**(crowded | {"client": 93.0}))) == "client_cpu"
    assert word(row(**(crowded | {"share": {"other": 0.05}}))) == "disturbed"
    assert word(row(**(crowded | {"share": {"other": 0.049}}))) == "client_cpu"
    assert word(row(**(crowded | {"share": {"other": 0.0, "unattributed": 0.05}}))) == "disturbed"


def test_a_word_that_leads_by_more_than_others_took_is_kept_beside_a_poor_grade() -> None:
    """A page that showed the client at 488 of 794 µs, with 12 % stolen."""
    found = judge(row(794.0, client=488.0, server=122.0, share={"steal": 0.12}))
    assert (found["word"], found["certainty"]) == ("client_cpu", "likely")
    assert (found["grade"]["word"], found["grade"]["share"]) == ("poor", pytest.approx(0.24))
    assert found["evidence"].startswith("client CPU: 488 of 794 µs")
    assert (
        found["grade"]["evidence"]
        == "the hypervisor took 12 % of the host's CPU time (steal) (at most 191 µs)"
    )


def test_the_largest_disturbance_is_named_first() -> None:
    found = judge(row(3120.0, client=500.0, server=120.0, queue={"client": 2299.0},
                      share={"steal": 0.03, "other": 0.45}))  # fmt: skip
    assert found["word"] == "disturbed"
    assert [each["source"] for each in found["grade"]["disturbances"]] == ["run_queue", "steal"]
    assert found["evidence"].startswith("74 % of the time in the run queue, while other processes kept 0.9")


def test_the_server_s_own_parallel_workers_are_no_disturbance() -> None:
    """They are unattributed unless a control group counts them; other processes that were seen still
    disturb.
    """
    crowded = row(layer="libpq", queue={"server": 12.0}, share={"unattributed": 0.4}, **CLOSE)
    assert word(crowded) == "disturbed"
    crowded["diagnostics"]["backends"] = 2.4
    found = judge(crowded)
    assert (found["word"], found["missing"]) == ("unknown", ["CPU of the server's parallel workers"])
    assert word(crowded | {"clients": 3}) == "disturbed"
    told = crowded | {"cpu_account": crowded["cpu_account"] | {"short_lived_us_per_op": 90.0}}
    assert word(told) == "disturbed"
    assert word(crowded | {"connect": "per_operation"}) == "disturbed", "one session ends, one begins"
    rival = crowded["cpu_account"]["share"] | {"other": 0.2}
    assert word(crowded | {"cpu_account": crowded["cpu_account"] | {"share": rival}}) == "disturbed"


def test_the_server_s_own_processes_have_the_whole_host() -> None:
    busy = row(9_000.0, client=100.0, server=2_000.0, clients=10, cpus=8)
    busy["cpu_us_per_op"]["auxiliaries"] = 1_500.0
    used = judge(busy)["numbers"]["utilisation"]["server"]
    assert used == pytest.approx(10 / 9_000 * (2_000 / 4 + 1_500 / 8))
    shared = row(9_000.0, client=100.0, server=500.0, clients=10, cpus=8, placement="together")
    shared["cpu_us_per_op"]["auxiliaries"] = 1_500.0
    used = judge(shared)["numbers"]["utilisation"]["host"]
    assert used == pytest.approx(10 / 9_000 * (100 + 500 + 1_500 / 8))


def test_a_pooler_of_many_threads_is_not_used_up_by_one_cpu() -> None:
    pooled_row = row(400.0, client=10.0, pooler=100.0, server=20.0, clients=4, placement="scheduler", cpus=8)
    assert judge(pooled_row)["numbers"]["pooler_busy"] == pytest.approx(1.0)
    pooled_row["cpu_account"]["role_cpus"] = {"clients": 8, "server": None, "pooler": None}
    assert judge(pooled_row)["numbers"]["pooler_busy"] is None


def test_two_sides_used_up_are_named_with_their_own_numbers() -> None:
    both = row(1_000.0, client=870.0, pooler=0.0, server=50.0, clients=8, placement="scheduler", cpus=8)
    both["cpu_account"]["role_cpus"] = {"clients": 7, "server": None}
    found = judge(both)
    used = found["numbers"]["utilisation"]
    assert used["host"] != used["clients"]
    assert f"the host's CPUs {100 * used['host']:.0f} % busy" in found["evidence"]


def test_an_invisible_server_is_not_called_a_disturbance() -> None:
    """What is not seen takes 94 µs, less than the client, unless the queue of 20 µs was for it."""
    crowded = {"client": 97.0, "queue": {"client": 20.0, "server": None}, "share": {"other": 0.2}}
    found = judge(row(server=None, **crowded))
    assert (found["word"], found["missing"]) == ("unknown", ["server CPU"])
    assert found["numbers"]["load_host"]["other_cpus"] is None
    assert found["evidence"].startswith("9 % of the time in the run queue; not known: server CPU; ")
    assert word(
        row(server=None, **(crowded | {"queue": {"client": 0.0, "server": None}, "client": 110.0}))
    ) == ("client_cpu")
    assert word(row(server=None, **(crowded | {"client": 165.0}))) == "client_cpu", "more than half anyway"


def test_with_little_other_cpu_time_an_invisible_server_is_ruled_out() -> None:
    quiet = {"queue": {"client": 12.0, "server": None}, "share": {"other": 0.049}}
    assert word(row(server=None, **quiet)) == "client_cpu"


def test_clients_that_queue_for_their_own_cpus_disturb_themselves_only() -> None:
    own = row(1320.0, client=165.0, server=21.0, clients=8, queue={"client": 1100.0}, share={"other": 0.2})
    assert word(own) == "client_cpu"
    assert judge(own)["numbers"]["run_queue"] > 0.8


def test_stolen_time_withdraws_a_word_that_it_could_change() -> None:
    """Of two processors: 3 % of them for 211 µs are 12.7 µs."""
    assert word(row(share={"steal": 0.03}, **CLOSE)) == "disturbed"
    assert word(row(share={"steal": 0.02}, **CLOSE)) == "client_cpu"
    assert (
        "the hypervisor took 3.0 % of the host's CPU time"
        in judge(row(share={"steal": 0.03}, **CLOSE))["evidence"]
    )
    assert word(row(share={"steal": 0.3})) == "client_cpu"
    assert word(row(share={"steal": 0.4})) == "disturbed"


def test_cpus_that_are_used_up_stay_so_whatever_others_took() -> None:
    full = {
        "client": 165.0,
        "server": 21.0,
        "clients": 8,
        "queue": {"client": 1100.0},
        "share": {"steal": 0.5},
    }
    found = judge(row(1320.0, **full))
    assert (found["word"], found["grade"]["word"]) == ("client_cpu", "poor")


def test_waiting_alone_explains_nothing_where_cpus_are_busy_all_the_same() -> None:
    pool = {"wait_us_per_query": 0.0, "sv_idle_min": 1}
    quiet = pooled(client=280.0, pooler=120.0, server=280.0, cpus=64, pool=pool)
    assert word(quiet) == "latency"
    busy = judge(pooled(client=290.0, pooler=122.0, server=290.0, cpus=64, pool=pool))
    assert (busy["word"], busy["missing"]) == ("unknown", ["what the clients wait for in turn"])
    assert word(pooled(client=290.0, pooler=122.0, server=290.0, clients=1, pool=pool)) == "latency"


@pytest.mark.parametrize(
    ("lacking", "missing"),
    [
        ({"us": None}, ["time per operation"]),
        ({"client": None}, ["client CPU"]),
        ({"client": 60.0, "server": None}, ["server CPU"]),
        ({"client": 60.0, "pooler": None}, ["pooler CPU"]),
        ({"client": 60.0, "queue": {"server": None}}, ["server run queue"]),
    ],
)
def test_unknown_figures_are_named(lacking: dict[str, Any], missing: list[str]) -> None:
    found = judge(row(**lacking))
    assert (found["word"], found["certainty"], found["missing"]) == ("unknown", None, missing)
    assert f"not known: {missing[0]}" in found["evidence"]
    assert found["intervention"] == ""


def test_a_queue_that_is_most_of_the_time_needs_no_sight_of_the_server() -> None:
    assert word(pooled(pool=POOL | {"wait_us_per_query": 600.0}, server=None)) == "pool_queue"
    assert judge(pooled(pool={"wait_us_per_query": 400.0}, server=None))["missing"] == ["server CPU"]


def test_a_pooler_that_says_nothing_is_named_and_not_taken_for_latency() -> None:
    found = judge(pooled(clients=1))
    assert (found["word"], found["missing"]) == ("unknown", ["pooler's counters"])
    assert word(pooled(clients=1, pool=POOL | {"wait_us_per_query": 0.0})) == "latency"


def test_more_than_half_suffices_whatever_the_rest_is() -> None:
    assert word(row(211.0, client=106.0, server=None)) == "client_cpu"
    assert word(row(211.0, client=105.0, server=None)) == "unknown"


def test_without_samples_waiting_is_no_latency() -> None:
    blind = row(211.0, client=60.0) | {"diagnostics": {}}
    assert judge(blind)["missing"] == ["wait events"]
    assert word(row(211.0, client=165.0) | {"diagnostics": {}}) == "client_cpu"


def test_waiting_for_cpus_that_no_known_process_uses_is_unknown() -> None:
    hidden = {"queue": {"client": 20.0}, "share": {"other": None, "unattributed": None}}
    found = judge(row(**hidden, **CLOSE))
    assert (found["word"], found["missing"]) == ("unknown", ["other processes' CPU"])
    assert word(row(**hidden)) == "client_cpu", "it leads by more than it waited"


def test_capacity_is_withheld_where_the_load_s_own_host_is_used_up_and_attribution_is_not() -> None:
    full = judge(row(1320.0, client=165.0, server=21.0, clients=8, queue={"client": 1100.0}))
    assert full["word"] == "client_cpu"
    assert full["checks"]["capacity"]["why"] == "the clients' CPUs were 100 % busy"
    busy = judge(row(share={"idle": 0.2}))
    assert busy["checks"]["capacity"]["withheld"] is True
    assert judge(row(share={"idle": 0.21}))["checks"]["capacity"]["withheld"] is False
    assert judge(row(share={"idle": None}))["checks"]["capacity"]["withheld"] is None


def test_a_verdict_keeps_the_consistency_checks() -> None:
    failed = Checks(LittlesLaw(8, 6.0, 0.4, holds=False))
    assert verdict_kinds.judge(summary(row()), failed).checks == failed


def test_a_verdict_is_stored_without_sentences_and_read_back() -> None:
    checks = Checks(LittlesLaw(1), {"clients": UtilisationLaw()})
    found = verdict_kinds.judge(summary(row(share={"steal": 0.03}, **CLOSE)), checks)
    stored = json.loads(json.dumps(found.to_json()))
    assert "(steal)" in verdict_kinds.evidence(found)
    assert "hypervisor" not in json.dumps(stored)
    assert Verdict.from_json(stored) == found


def test_an_unknown_verdict_names_the_grant_that_would_show_the_sessions() -> None:
    grant = 'GRANT "shop reader" TO site'
    hidden = row(pooler=20.0, client=20.0, server=None, queue={"server": None})
    assert "GRANT" not in judge(hidden)["evidence"]
    hidden["cpu_account"]["missing_grant"] = grant
    found = judge(hidden)
    assert (found["word"], found["finding"]["grant"]) == ("unknown", grant)
    assert (
        f"not known: server CPU; the run's login may not see the server's sessions: {grant}"
        in found["evidence"]
    )
    verdict = verdict_kinds.judge(summary(hidden))
    assert Verdict.from_json(json.loads(json.dumps(verdict.to_json()))) == verdict


def test_no_grant_is_named_where_it_would_show_nothing() -> None:
    for given_row in (row(us=None), row(client=None), row()):
        given_row["cpu_account"]["missing_grant"] = "GRANT reader TO site"
        assert "GRANT" not in judge(given_row)["evidence"]


def test_a_verdict_stored_before_grants_were_named_is_read() -> None:
    stored = verdict_kinds.judge(summary(row())).to_json()
    del stored["finding"]["grant"]
    found = Verdict.from_json(stored)
    assert found
    assert found.finding.grant == ""


def test_a_verdict_stored_without_a_grade_is_read() -> None:
    found = verdict_kinds.judge(summary(row(share={"steal": 0.03}, **CLOSE)))
    stored = found.to_json()
    del stored["grade"], stored["lead"]
    older = Verdict.from_json(stored)
    assert older
    assert (older.grade.word, older.lead) == ("unknown", None)
    assert verdict_kinds.evidence(older).startswith("the hypervisor took 3.0 % of the host's CPU time")


def test_two_parts_are_named_where_either_may_be_the_longer_one() -> None:
    times = [
        TimeBreakdown.of(summary(row(client=100.0 + move, server=98.0 - move)))
        for move in (-9, 2, 8, -3, 5, 1)
    ]
    found = verdict_kinds.judge(summary(row(client=100.0, server=98.0)), by_block=times)
    assert found.lead
    assert (found.word, found.lead.runner_up, found.lead.is_open) == ("client_cpu", "server", True)
    assert verdict_kinds.titles(found) == ("client CPU", "server CPU")
    apart = [TimeBreakdown.of(summary(row(client=165.0 + move))) for move in (-9, 2, 8, -3, 5, 1)]
    sure = verdict_kinds.judge(summary(row()), by_block=apart)
    assert verdict_kinds.titles(sure) == ("client CPU",)


KNOWN = st.none() | st.floats(0, 1e7)
SHARE = st.none() | st.floats(0, 1)
SHARES = ("clients", "pooler", "server", "other", "unattributed", "idle", "iowait", "steal")


@given(
    us=KNOWN, client=KNOWN, pooler=KNOWN, server=KNOWN,
    clients=st.integers(1, 1000), cpus=st.none() | st.integers(1, 512),
    placement=st.sampled_from(["apart", "together", "scheduler"]),
    layer=st.sampled_from(["libpq", "django_orm", "fake"]),
    queue=st.dictionaries(st.sampled_from(["client", "pooler", "server"]), KNOWN),
    share=st.dictionaries(st.sampled_from(SHARES), SHARE),
    events=st.none() | st.dictionaries(st.sampled_from(["CPU", "Client", "Lock", "IO", "IPC"]), SHARE),
    pool=st.none() | st.fixed_dictionaries({"wait_us_per_query": KNOWN, "sv_idle_min": st.none() | st.integers(0, 9)}),
    samples=st.none() | st.integers(0, 1000),
    seats=st.none() | st.fixed_dictionaries({"clients": st.integers(1, 64), "server": st.none() | st.integers(1, 64)}),
    far=st.none() | st.fixed_dictionaries(
        {"cpus": st.integers(1, 64), "share": st.dictionaries(st.sampled_from(SHARES), SHARE)}
    ),
)  # fmt: skip
def test_every_row_gets_a_known_verdict_and_unknown_without_figures(
    samples: int | None, seats: Any, far: Any, **given_values: Any
) -> None:
    given_row = row(**given_values)
    given_row["diagnostics"] |= {"samples": samples, "wait_events": given_values["events"]}
    given_row["cpu_account"] |= {"role_cpus": seats, "server_host": far}
    found = judge(given_row)
    assert found["word"] in verdict_kinds.words()
    assert bool(found["missing"]) == (found["word"] == "unknown")
    assert found["certainty"] == (None if found["word"] in ("unknown", "disturbed") else "likely")
    shares = found["numbers"]["shares"]
    assert not shares or sum(shares.values()) == pytest.approx(1.0)
    if given_values["us"] is None or given_values["client"] is None:
        assert found["word"] == "unknown"


@pytest.mark.parametrize(
    "empty", [{}, {"us_per_op": 100.0}, {"cpu_account": {}, "diagnostics": {}, "cpu_us_per_op": {}}]
)
def test_a_row_of_an_older_run_is_unknown(empty: Row) -> None:
    assert word(empty) == "unknown"


def test_tasks_that_share_one_thread_wait_for_it_whatever_it_does() -> None:
    """Of 10 tasks one at a time has the thread, also while the server works for it."""
    shared = {"clients": 1, "workers": 10, "placement": "scheduler", "cpus": 8, "layer": "django_orm_async"}
    found = judge(row(8000.0, client=400.0, server=300.0, **shared) | {"ops_per_s": 1250.0})
    assert (found["word"], found["intervention"]) == ("interpreter", "processes")
    assert found["numbers"]["parts_us"]["interpreter"] == pytest.approx(7200.0)


@pytest.mark.parametrize(
    ("ops_per_s", "expected", "waited_us"),
    [(50.0, "latency", 8000.0 * 0.4 / 1.4), (1250.0, "interpreter", 7200.0)],
)
def test_at_a_rate_tasks_wait_for_their_thread_as_often_as_others_have_it(
    ops_per_s: float, expected: str, waited_us: float
) -> None:
    """50 operations of 8 ms a second leave the thread free for most of the time; 1,250 leave none."""
    shared = {"clients": 1, "workers": 10, "placement": "scheduler", "cpus": 8, "layer": "django_orm_async"}
    at_a_rate = {"ops_per_s": ops_per_s, "rate": ops_per_s, "schedule": "constant"}
    found = judge(row(8000.0, client=400.0, server=300.0, **shared) | at_a_rate)
    assert found["word"] == expected
    assert found["numbers"]["parts_us"]["interpreter"] == pytest.approx(waited_us)


def test_a_disturbed_variant_of_which_no_part_is_known_is_unknown() -> None:
    blind = row(server=None, pooler=None, client=None, share={"steal": 0.5}) | {"diagnostics": {}}
    blind["workers"] = 4
    assert word(blind) == "unknown"
