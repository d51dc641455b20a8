"""The clients of one variant: whose they are, their names, and their backends."""

import os
from dataclasses import replace

import pytest

from pgperf.core import protocol
from pgperf.core.limits import REQUEST_DEADLINE_S
from pgperf.runner.client_group import ClientGroup, find_server_cgroup
from pgperf.runner.cpu.accounting import SliceAccounting
from pgperf.runner.cpu.host import Host
from pgperf.runner.processes.web_processes import WebProcesses
from pgperf.runner.server import departure
from pgperf.runner.server.probe import ServerProbe
from pgperf.runner.timed_slice import measure
from tests.core.builders import variant
from tests.runner.client_groups import groups_of
from tests.runner.cpu.test_accounting import work, worker


class TestWebServersThatKeepTheirConnections:
    """Clients reconnect to the web server, and it has one connection to the database."""

    def group(self) -> ClientGroup:
        http = variant(layer="http", route="web", connect="per_operation")
        return ClientGroup(http, "app", server_pids=[os.getpid()], auxiliary_pids=[os.getppid()])

    def test_their_backends_are_those_that_were_found(self) -> None:
        """So the server is known without a control group of its own."""
        with worker() as server:
            group = replace(self.group(), server_pids=[server.pid])
            find_server_cgroup([group])
            assert group.server_unknown == ""
            accounting = SliceAccounting(Host.here(), group.processes())
            work(server)
            found = accounting.close().fields()
        assert found["server_ns"] == found["server_busiest_ns"] > 0

    def test_nobody_waits_until_they_leave(self, monkeypatch: pytest.MonkeyPatch) -> None:
        asked: list[ClientGroup] = []
        monkeypatch.setattr(departure, "of_backends", lambda *words, **_: asked.append(words) or "left")
        probe = ServerProbe([], object(), "app", False)  # type: ignore[arg-type]
        assert probe.departed(self.group()) == ""
        assert probe.departed(replace(self.group(), server_pids=[])) == "left"

    def test_a_client_says_why_its_requests_fail_before_it_is_given_up(self) -> None:
        """However short a request usually is: after two deadlines."""
        request = protocol.Slice(seq=1, lead_in_ops=10, lead_in_ns=0, window_ns=50_000_000)
        group = self.group()
        group.op_s = 0.020
        assert group.longest_s(request) >= 2 * REQUEST_DEADLINE_S

    @pytest.mark.parametrize("connect", ["per_operation", "persistent"])
    def test_without_one_their_backends_pass_however_clients_connect(self, connect: str) -> None:
        """A site with CONN_MAX_AGE 0 connects for each request."""
        group = self.group()
        there = WebProcesses(proxy=[], web=[os.getppid()])
        with_web = replace(group, variant=replace(group.variant, connect=connect), web=there)
        assert not with_web.backends_pass
        assert replace(with_web, server_pids=[]).processes().backends_pass

    def test_nothing_is_known_of_the_backends_of_kept_connections_to_another_machine(self) -> None:
        group = replace(self.group(), server_pids=[], web=WebProcesses())
        assert not replace(group, variant=replace(group.variant, connect="persistent")).backends_pass


class TestSharedClients:
    def test_fewer_clients_are_the_first_of_the_largests(self) -> None:
        with groups_of(1, 2, 4) as (one, two, four, control):
            assert len({client.pid for client in four.clients}) == 4
            assert one.clients == four.clients[:1]
            assert two.clients == four.clients[:2]
            assert [each.owner for each in (one, two, four, control)] == [four, four, None, None]
            assert control.clients[0] not in four.clients
            assert [ready.pid for ready in two.ready] == [client.pid for client in two.clients]

    def test_each_connection_is_told_apart_by_its_application_name(self) -> None:
        with groups_of(1, 4) as (one, four, control):
            assert four.applications == ["run-1", "run-1.1", "run-1.2", "run-1.3"]
            assert one.applications == ["run-1"]
            assert control.applications == ["run-2"]

    def test_a_slice_drives_its_own_clients_and_no_other(self) -> None:
        with groups_of(1, 3) as (one, three, _control):
            request = protocol.Slice(seq=1, lead_in_ops=1, count=5)
            for group, clients in ((one, 1), (three, 3), (one, 1)):
                assert len(group.run(request).replies) == clients
            record, window = measure(three, request, 0, 0)
            assert record.ops == len(window.durations) == 15
            assert record.connect_ns is None

    def test_each_worker_has_a_name_of_its_own(self) -> None:
        with groups_of(2, workers=3) as (two, control):
            names = ["run-0", "run-0.1", "run-0.2", "run-0.3", "run-0.3.1", "run-0.3.2"]
            assert two.applications == names
            assert len(two.clients) == len(control.clients) == 2
