"""The owner's view of load hosts: parts, schedules, and slices of several hosts as one."""

from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgperf.analysis.known_sum import known_sum
from pgperf.core import protocol
from pgperf.core.exceptions import LoadHostFailed, LoadHostLate, ProtocolError
from pgperf.core.host_part import HostPart
from pgperf.core.records import SliceRecord, Variant
from pgperf.runner import block_processes, block_results, load_accounts, load_hosts, timed_slice
from pgperf.runner.client_group import ClientGroup
from pgperf.runner.client_process import while_waiting
from pgperf.runner.cpu.accounting import SliceAccount
from pgperf.runner.cpu.host import Host, HostInterval
from pgperf.runner.host_slices import HostSlice
from pgperf.runner.load_accounts import CountingHost, HostBlock
from pgperf.runner.load_hosts import HostedCohort, HostedGroup, HostStart, Turn, joined, part_of, scheduled
from pgperf.runner.processes.web_processes import WebProcesses
from pgperf.runner.run_context import VariantMeasurements
from pgperf.runner.slice_window import Recorded, SliceWindow
from pgperf.runner.timed_slice import SlicePlace, slice_record

VARIANT = Variant(
    workload="w", layer="fake", mode="simple", route="here", clients=5, connect="persistent", placement="apart", hosts=2
)  # fmt: skip
MS = 1_000_000


def reply(first_ns: int, ops: int = 1) -> protocol.SliceReply:
    return protocol.SliceReply(
        seq=1, ops=ops, rows=ops, lead_in_ops=0, first_ns=first_ns, user_ns=1, sys_ns=1, capped=False, nbytes=8 * ops
    )  # fmt: skip


def recorded(*clients: list[int], first_ns: int = 0) -> Recorded:
    durations = [np.array(each, dtype=np.uint64) for each in clients]
    return Recorded(
        [reply(first_ns, len(each)) for each in clients],
        durations,
        [np.zeros((0, len(each)), dtype=np.uint64) for each in clients],
    )


def open_loop(*lags: list[int]) -> Recorded:
    """What clients with these lags recorded, all of them from the same intended start."""
    durations = [np.array(each, dtype=np.uint64) + np.uint64(5) for each in lags]
    phases = [np.array([each], dtype=np.uint64).reshape(1, -1) for each in lags]
    return Recorded([reply(100, len(each))._replace(phases=["lag"]) for each in lags], durations, phases)


class TestParts:
    def test_hosts_without_a_client_take_no_part(self) -> None:
        few = replace(VARIANT, clients=1)
        assert [part_of(few, at, 2) for at in range(2)] == [HostPart(0, 1), None]

    def test_the_hosts_that_are_left_share_all_clients(self) -> None:
        four = replace(VARIANT, hosts=4, clients=8)
        parts = [part_of(four, at, 3) for at in range(3)]
        assert sorted(i for part in parts if part for i in part.indices(8)) == list(range(8))

    @given(st.integers(1, 40), st.integers(1, 8), st.integers(1, 8))
    def test_what_the_hosts_recorded_is_in_the_order_of_the_clients(
        self, clients: int, hosts: int, left: int
    ) -> None:
        variant = replace(VARIANT, clients=clients, hosts=hosts)
        parts = [part for at in range(left) if (part := part_of(variant, at, left))]
        by_host = [recorded(*([client + 1] for client in part.indices(clients))) for part in parts]
        assert [int(each[0]) for each in joined(variant, by_host).durations] == list(range(1, clients + 1))

    def test_a_missing_client_is_an_error(self) -> None:
        with pytest.raises(ProtocolError, match="4 of 5 clients"):
            joined(VARIANT, [recorded([1], [1]), recorded([1], [1])])


class OneHost:
    """Its clients are ready, each with cold phases of its own."""

    own_machine = "the owner's"

    def __init__(self, machine: str = "its own") -> None:
        self.machines = [machine]

    def start(self, _cohort: int, _block: int, _cold: bool) -> list[HostStart]:
        ready = [protocol.Ready(pid, pid, {}, "18", 1, first_us=pid) for pid in range(1, 5)]
        return [HostStart({0: ready[:1], 1: ready, 2: ready[:1]}, {0: 0.1, 1: 0.1, 2: 0.1})]

    def end(self) -> None: ...


class TestSharedClients:
    """1 and 4 clients of a layer, and a control, on one load host."""

    def groups(self, hosts: OneHost | None = None) -> list[HostedGroup]:
        four = replace(VARIANT, clients=4, hosts=1)
        one = replace(four, clients=1)
        named = [(one, "run-0"), (four, "run-1"), (replace(one, control=1), "run-2")]
        with load_hosts.hosted(hosts or OneHost(), 0, 0, named, True) as groups:  # type: ignore[arg-type]
            return groups

    def test_on_the_owners_machine_nothing_tells_them_from_other_programs(self) -> None:
        for hosts, seen in ((OneHost(), True), (OneHost(OneHost.own_machine), False)):
            assert [group.clients_seen for group in self.groups(hosts)] == [seen] * 3

    def test_only_the_largest_has_cold_phases(self) -> None:
        counted = {"role_cpus": {}}
        folded = [block_results.fold(group, 0, 0, VariantMeasurements(), counted) for group in self.groups()]
        assert [each.cold_us.get("first") for each in folded] == [None, 1, 1]

    def test_the_backends_of_the_others_have_its_names(self) -> None:
        one, four, control = self.groups()
        assert one.applications == four.applications[:1] == ["run-1"]
        assert control.applications == ["run-2"]


class TestSchedule:
    def turns(self, count: int, op_s: float = 0.0) -> list[Turn]:
        group = HostedGroup(VARIANT, "app", op_s=op_s, cohort=HostedCohort(None))  # type: ignore[arg-type]
        request = protocol.Slice(seq=1, lead_in_ops=1, lead_in_ns=20 * MS, window_ns=50 * MS)
        return [Turn(group, request, at) for at in range(count)]

    def test_no_slice_begins_before_the_clients_of_the_one_before_are_collected_and_armed(self) -> None:
        timed = scheduled(self.turns(4), 10**12)
        starts = [turn.request.start_ns for turn in timed]
        arming = ClientGroup.arming_ns(timed[0].group, timed[0].request)
        assert starts[0] == 10**12 + arming
        gaps = [later - earlier - 70 * MS - arming for earlier, later in pairwise(starts)]
        assert gaps == [load_hosts._COLLECT_NS] * 3

    def test_slow_operations_have_time_to_end(self) -> None:
        quick, slow = (scheduled(self.turns(2, op_s), 0) for op_s in (0.0, 1.0))
        assert slow[1].request.start_ns - quick[1].request.start_ns == 2 * 10**9


class Settling:
    """Load hosts whose clocks take 10 s to settle, by the test's own clock."""

    def __init__(self, clock: "Clock") -> None:
        self.clock, self.windows = clock, []  # type: list[int]
        self.ordered: list[protocol.Slice] = []

    def settle(self, window_ns: int) -> None:
        self.windows.append(window_ns)
        self.clock.now_ns += 10**10

    def order(self, slices: list[tuple[int, protocol.Slice]]) -> None:
        self.ordered = [request for _at, request in slices]
        raise LoadHostFailed("a", "that is enough")


class Clock:
    """Time passes only where somebody sleeps. One who sleeps until a moment wakes `late_ns` late."""

    def __init__(self, late_ns: int = 0) -> None:
        self.now_ns, self.late_ns = 10**12, late_ns

    def monotonic_ns(self) -> int:
        return self.now_ns

    def sleep(self, seconds: float) -> None:
        self.now_ns += round(seconds * 1e9)

    def sleep_until(self, moment_ns: int) -> None:
        self.now_ns = max(self.now_ns, moment_ns + self.late_ns)


class TestStarts:
    """They are chosen after the clocks have settled: else all hosts would be late."""

    def settling(self, monkeypatch: pytest.MonkeyPatch) -> Settling:
        clock = Clock()
        monkeypatch.setattr(load_hosts, "time", clock)
        monkeypatch.setattr(timed_slice, "time", clock)
        return Settling(clock)

    def test_of_a_round(self, monkeypatch: pytest.MonkeyPatch) -> None:
        hosts, turns = self.settling(monkeypatch), TestSchedule().turns(2)
        longer = turns[0]._replace(request=turns[0].request._replace(window_ns=60 * MS))
        with pytest.raises(LoadHostFailed, match="enough"):
            load_hosts._ordered(HostedCohort(hosts), [longer, turns[1]], 0, None, lambda _group: "")  # type: ignore[arg-type]
        assert hosts.windows == [50 * MS]
        assert hosts.ordered[0].start_ns - hosts.clock.now_ns >= load_hosts._LEAD_NS

    def test_of_a_slice_of_its_own(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Such as a diagnostic slice."""
        hosts = self.settling(monkeypatch)
        group = HostedGroup(VARIANT, "app", cohort=HostedCohort(hosts))  # type: ignore[arg-type]
        found = timed_slice.armed(group, protocol.Slice(seq=1, window_ns=70 * MS))
        assert hosts.windows == [70 * MS]
        assert found.start_ns - hosts.clock.now_ns >= load_hosts._LEAD_NS


class Awaited:
    """Load hosts whose answer is awaited: until when their slices must have ended."""

    def __init__(self) -> None:
        self.until_ns: list[int] = []

    def settle(self, window_ns: int) -> None: ...

    def order(self, slices: list[tuple[int, protocol.Slice]]) -> None:
        self.start_ns = slices[0][1].start_ns

    def results(self, until_ns: int) -> list[list[HostSlice]]:
        self.until_ns.append(until_ns)
        raise LoadHostFailed("a", "that is enough")


class TestDeadline:
    """Two slow operations may take longer than a host has for its answer."""

    def slow(self) -> tuple[Awaited, HostedGroup, protocol.Slice]:
        hosts, request = Awaited(), protocol.Slice(seq=1, lead_in_ops=1, lead_in_ns=0, count=1)
        cohort = HostedCohort(hosts)  # type: ignore[arg-type]
        return hosts, HostedGroup(VARIANT, "app", op_s=40.0, cohort=cohort), request

    def test_of_a_round(self) -> None:
        hosts, group, request = self.slow()
        with pytest.raises(LoadHostFailed, match="enough"):
            load_hosts._ordered(group.hosted, [Turn(group, request, 0)], 0, None, lambda _group: "")
        assert hosts.until_ns[0] >= hosts.start_ns + 80 * 10**9

    def test_of_a_slice_of_its_own(self) -> None:
        hosts, group, request = self.slow()
        with pytest.raises(LoadHostFailed, match="enough"):
            group.run(request._replace(start_ns=10**12))
        assert hosts.until_ns[0] >= hosts.start_ns + 80 * 10**9


class Accounting:
    """In place of an account of a slice: when it was opened."""

    def __init__(self, clock: Clock) -> None:
        self.clock, self.opened_ns = clock, clock.now_ns

    def close(self) -> SliceAccount:
        host = HostInterval(elapsed_ns=self.clock.now_ns - self.opened_ns, busy_ns=0, iowait_ns=0, steal_ns=0)
        return SliceAccount(host=host, runner_ns=0, cpu_time={}, ticks_and_switches={})

    def new_processes(self) -> bool:
        return False

    def lost_processes(self, _account: SliceAccount) -> bool:
        return False


class TestStandstill:
    """The owner does not run for a while: an account of another time than its slice is void."""

    def accounts(self, monkeypatch: pytest.MonkeyPatch, late_ns: int) -> tuple[list[int | None], Any]:
        """The time that the account of each of three slices covers, and the totals of their group."""
        clock, turns = Clock(late_ns), TestSchedule().turns(3)
        monkeypatch.setattr(load_hosts, "time", clock)
        monkeypatch.setattr(timed_slice, "time", clock)
        monkeypatch.setattr(load_hosts, "sleep_until", clock.sleep_until)
        monkeypatch.setattr(load_hosts, "SliceAccounting", lambda _host, _processes: Accounting(clock))
        found = load_hosts._accounts(scheduled(turns, clock.now_ns + 400 * MS), Host.here())
        covered = [each.counted.host.elapsed_ns if each.counted else None for each in found]
        return covered, turns[0].group.totals.to_json()

    def test_none(self, monkeypatch: pytest.MonkeyPatch) -> None:
        covered, totals = self.accounts(monkeypatch, 0)
        assert covered == [70 * MS + load_hosts._READ_NS] * 3
        assert None not in totals["ticks_and_switches"].values()

    def test_a_short_one_at_the_start_lets_the_account_begin_before(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """From the order, or from the end of the slice before."""
        covered, totals = self.accounts(monkeypatch, 5 * MS)
        arming_ns = ClientGroup.arming_ns(TestSchedule().turns(1)[0].group, protocol.Slice(seq=1))
        between_ns = load_hosts._COLLECT_NS + arming_ns
        assert covered == [
            400 * MS + arming_ns + 75 * MS, 70 * MS + between_ns, 70 * MS + between_ns,
        ]  # fmt: skip
        assert None not in totals["ticks_and_switches"].values()

    def test_one_until_the_next_slice_has_begun(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The account of the slice has a part of the next one, whose account would lack it."""
        covered, totals = self.accounts(monkeypatch, 60 * MS)
        assert covered[0] is covered[1] is covered[2] is None
        assert set(totals["ticks_and_switches"].values()) == {None}
        assert set(totals["throttled_ns"].values()) == {None}
        assert "short_lived_ns" not in totals

    def test_what_a_void_account_would_say_of_web_servers_is_unknown(self) -> None:
        """0 would be known."""
        request = protocol.Slice(seq=1, count=5)
        here = ClientGroup(replace(VARIANT, hosts=0, clients=1), "app")
        behind = replace(here, web=WebProcesses(web=[1], proxy=[]))
        place = SlicePlace(0, 0, 0)
        found = [slice_record(each, request, recorded([1] * 5), place, None)[0] for each in (here, behind)]
        assert [(each.web_ns, each.proxy_ns, each.elapsed_ns) for each in found] == [
            (0, 0, None),
            (None, None, None),
        ]


class TestSleep:
    @pytest.mark.parametrize(("for_s", "looks"), [(0.3, 0), (1.0, 1), (1.3, 1)])
    def test_a_slow_look_before_a_slice_does_not_delay_it(
        self, for_s: float, looks: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        clock = Clock()
        looked: list[int] = []
        monkeypatch.setattr(load_hosts, "time", clock)

        def slow() -> None:
            looked.append(clock.now_ns)
            clock.sleep(0.3)

        moment = clock.now_ns + round(for_s * 1e9)
        with while_waiting(slow):
            load_hosts.sleep_until(moment)
        assert 0 <= clock.now_ns - moment < MS
        assert len(looked) == looks


class TestLate:
    def test_there_is_more_time_between_slices_too(self) -> None:
        """Else a host that needs longer to collect a slice is late however early the order is."""
        turns = TestSchedule().turns(2)
        first, second = (turn.request.start_ns for turn in scheduled(turns, 0))
        turns[0].group.hosted.later(LoadHostLate("late", "b"))  # type: ignore[attr-defined]
        later, second_later = (turn.request.start_ns for turn in scheduled(turns, 0))
        assert (second_later - later) - (second - first) == load_hosts._COLLECT_NS

    def test_a_void_order_is_not_in_the_totals_of_a_block(self) -> None:
        group = TestSchedule().turns(1)[0].group
        group.totals.passing_ns = 5

        @load_hosts._void_if_late([group])
        def late() -> None:
            group.totals.passing_ns += 7
            raise LoadHostLate("late", "b")

        with pytest.raises(LoadHostLate):
            late()
        assert group.totals.passing_ns == 5

    def test_processes_are_looked_for_again_with_more_time(self) -> None:
        """Clients of a web server work meanwhile, so a host may be late for that too."""
        cohort, tried = HostedCohort(None), []  # type: ignore[arg-type]
        groups = [ClientGroup(replace(VARIANT, hosts=0), "here"), HostedGroup(VARIANT, "away", cohort=cohort)]

        def find(asked: list[ClientGroup]) -> None:
            tried.append(cohort.lead_ns)
            assert asked == groups
            if len(tried) == 1:
                raise LoadHostLate("late", "b")

        block_processes.find_processes(SimpleNamespace(find_servers=find, relays={}), groups)  # type: ignore[arg-type]
        assert tried == [load_hosts._LEAD_NS, 2 * load_hosts._LEAD_NS]

    def test_a_clock_that_is_not_known_gets_no_more_time(self) -> None:
        """The longer a round is, the further clocks drift apart."""
        cohort = HostedCohort(None)  # type: ignore[arg-type]
        tries = iter([LoadHostLate("unsure", "b", needs_time=False), None])

        def measure_it() -> int:
            if error := next(tries):
                raise error
            return cohort.lead_ns

        group = HostedGroup(VARIANT, "app", cohort=cohort)
        assert load_hosts.in_time(group, measure_it) == load_hosts._LEAD_NS

    def test_a_host_that_is_late_again_and_again_is_named(self) -> None:
        """So the run can go on with the others, if it may."""
        cohort, tried = HostedCohort(None), []  # type: ignore[arg-type]
        group = HostedGroup(VARIANT, "app", cohort=cohort)

        def late() -> None:
            tried.append(cohort.lead_ns)
            raise LoadHostLate("load host b: the order came after its start", "b")

        with pytest.raises(
            LoadHostFailed, match=r"load host b: an order reached it too late, 13 s"
        ) as failed:
            load_hosts.in_time(group, late)
        assert failed.value.host == "b"
        assert [later / earlier for earlier, later in pairwise(tried)] == [2.0] * (len(tried) - 1)
        assert tried[-1] >= load_hosts._LEAD_MOST_NS


class TestTogether:
    def test_two_hosts_share_one_window(self) -> None:
        """Both started at 0; what ended from 10 to 30 counts."""
        request = protocol.Slice(seq=1, start_ns=1, lead_in_ops=1, lead_in_ns=9, window_ns=20)
        both = joined(replace(VARIANT, clients=2), [recorded([6, 6, 6, 6, 6]), recorded([11, 11, 11])])
        window = SliceWindow.of(request, *both)
        assert (window.ops, sorted(window.durations.tolist())) == (4 + 2, [6, 6, 6, 6, 11, 11])

    def slices(self, *machines: str) -> dict[str, Any]:
        cpu = {
            "elapsed_ns": 100, "host_ns": 50, "iowait_ns": 1, "steal_ns": 2, "runner_ns": 3, "client_ns": 40,
            "client_wait_ns": 4, "client_busiest_ns": 30,
        }  # fmt: skip
        own = SliceRecord(
            round=0, position=0, ops=1, rows=1, lead_in_ops=0, window_ns=1, us_per_op=1.0, ops_per_s=1.0, user_ns=0,
            sys_ns=0, elapsed_ns=90, host_ns=70, iowait_ns=5, steal_ns=6, runner_ns=7,
        )  # fmt: skip
        found = [HostSlice(recorded([1]), cpu) for _ in machines]
        return load_accounts.cpu_together(own, found, machines, "owner's")

    def test_each_machine_counts_once(self) -> None:
        found = self.slices("one", "one", "two")
        assert (found["host_ns"], found["steal_ns"], found["elapsed_ns"]) == (100, 4, 100)
        assert (found["client_ns"], found["client_busiest_ns"], found["runner_ns"]) == (120, 30, 9)

    def test_on_the_owners_machine_its_own_account_counts(self) -> None:
        found = self.slices("owner's", "two")
        assert (found["host_ns"], found["elapsed_ns"], found["runner_ns"]) == (70 + 50, 90, 7 + 6)
        assert found["client_ns"] == 80

    def test_the_cpus_of_a_variant_are_those_of_its_own_clients(self) -> None:
        """On the owner's machine, clients of a database (0) and of pages (1) have different ones."""
        counted = {"cpus": 8, "source": "cgroup", "elapsed_ns": 9, "host_ns": 5, "ours_ns": 3, "others_ns": 1}
        nothing = {"ticks_and_switches": {"client": None}, "throttled_ns": {"client": None}}
        block = HostBlock(counted, {0: {**nothing, "client_cpus": 4}, 1: {**nothing, "client_cpus": 1}})
        hosts = [CountingHost("a", "owner's", None, block), CountingHost("b", "owner's", None, block)]
        for at, clients, server in ((0, 4, 4), (1, 1, 7)):
            own = {**counted, "role_cpus": {"clients": clients, "server": server}}
            found = load_accounts.variant_account(at, nothing, hosts, "owner's", own)
            assert found["role_cpus"] == {"clients": clients, "server": server}, "a machine counts once"
            assert [each["client_cpus"] for each in found["load_hosts"]] == [clients, clients]

    @pytest.mark.parametrize(
        ("machines", "hosted", "own"),
        [
            (("there", "there", "elsewhere"), (30, 2), (5, 32)),
            (("there", "elsewhere", "there"), (11, 21), (5, 32)),
            (("owner's", "owner's", "there"), (35, 2), (35, 2)),
            (("there", "owner's", "owner's"), (10, 22), (26, 11)),
        ],
    )
    def test_the_clients_of_a_host_that_stands_by_are_no_other_programs(
        self, machines: tuple[str, ...], hosted: tuple[int, int], own: tuple[int, int]
    ) -> None:
        """One variant is on the first of three hosts alone, and one on none of them."""
        used = {"cpus": 8, "source": "cgroup", "elapsed_ns": 99, "host_ns": 50}
        nothing = {"client": None}
        totals = {"ticks_and_switches": nothing, "throttled_ns": nothing, "client_cpus": 4}
        blocks = [
            HostBlock({**used, "ours_ns": ours_ns, "others_ns": 32 - ours_ns}, dict.fromkeys(places, totals))
            for ours_ns, places in ((10, (0, 1)), (20, (1,)), (1, (1,)))
        ]
        hosts = SimpleNamespace(
            names=["a", "b", "c"], machines=machines, network_mbit=[None] * 3, own_machine="owner's",
            totals=lambda: blocks,
        )  # fmt: skip
        groups = [
            HostedGroup(replace(VARIANT, hosts=1), "away", cohort=HostedCohort(hosts)),  # type: ignore[arg-type]
            ClientGroup(replace(VARIANT, hosts=0), "here"),
        ]
        owners = {**used, "ours_ns": 5, "others_ns": 32, "role_cpus": {"clients": 4, "server": 4}}
        counts = load_hosts.accounts(groups, lambda _variant: owners)
        found = [(counts[each.variant]["ours_ns"], counts[each.variant]["others_ns"]) for each in groups]
        assert found == [hosted, own]
        assert [each["name"] for each in counts[groups[0].variant]["load_hosts"]] == ["a"]
        assert "load_hosts" not in counts[groups[1].variant]

    def test_a_part_that_one_host_does_not_know_is_unknown(self) -> None:
        own = HostSlice(recorded([1]), dict.fromkeys(("client_ns",), 1))
        unknown = HostSlice(recorded([1]), {"client_ns": None})
        assert known_sum(each.cpu["client_ns"] for each in (own, unknown)) is None

    def test_the_skew_is_between_the_first_starts_of_the_hosts(self) -> None:
        request = protocol.Slice(seq=1, start_ns=100)
        found = [HostSlice(recorded([1], [1], first_ns=at), {}) for at in (100, 130, 110)]
        assert load_hosts.skew_ns(request, found) == 30

    @pytest.mark.parametrize(
        ("rate", "slices"),
        [
            pytest.param(0.0, [recorded([1], first_ns=100)], id="one host"),
            pytest.param(10.0, [open_loop([70]), open_loop([])], id="one host had something to do"),
            pytest.param(10.0, [open_loop([]), open_loop([])], id="no host had"),
        ],
    )
    def test_fewer_than_two_starts_have_no_skew(self, rate: float, slices: list[Recorded]) -> None:
        """A 0 would make the percentile of the others look better than it is."""
        request = protocol.Slice(seq=1, start_ns=100, rate=rate, schedule="constant")
        assert load_hosts.skew_ns(request, [HostSlice(each, {}) for each in slices]) is None

    def test_a_percentile_without_values_is_not_known(self) -> None:
        assert load_hosts.percentile([], 0.99) is None
        assert load_hosts.percentile([1, 2, 3], 0.5) == 2

    def test_hosts_of_an_open_loop_differ_in_the_lag_of_their_first_operation(self) -> None:
        """Each reports the intended start, which says nothing; one had nothing to do."""
        request = protocol.Slice(seq=1, start_ns=100, rate=10.0, schedule="constant")
        lagging = [[[70, 1], [50, 2]], [[90, 3], []], [[], []]]
        assert load_hosts.skew_ns(request, [HostSlice(open_loop(*lags), {}) for lags in lagging]) == 40
