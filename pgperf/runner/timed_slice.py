"""One timed slice of a variant: started on all clients, and its record with the CPU account."""

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import NamedTuple

from pgperf.core import layers, protocol
from pgperf.core.exceptions import LoadHostLate
from pgperf.core.records import SliceRecord
from pgperf.runner import slice_replies
from pgperf.runner.client_group import ClientGroup
from pgperf.runner.cpu.accounting import SliceAccount, SliceAccounting
from pgperf.runner.cpu.host import Host
from pgperf.runner.processes.web_processes import NO_WEB_SERVER
from pgperf.runner.slice_window import Recorded, SliceWindow

#: Time to read the CPU counters of armed clients, plus the time that each connection adds.
_READ_NS, _READ_EACH_NS = 2_000_000, 150_000

_OF_WEB_SERVERS = ("web_ns", "web_wait_ns", "web_busiest_ns", "proxy_ns", "proxy_wait_ns", "proxy_busiest_ns")

#: Waits until the backends of a slice have left the server; returns why they have not, else "".
AwaitDeparture = Callable[[ClientGroup], str]


class SlicePlace(NamedTuple):
    """Where in a block a slice was, and when it began."""

    round: int
    position: int
    started_ns: int


def measure(
    group: ClientGroup,
    request: protocol.Slice,
    round_: int,
    position: int,
    host: Host | None = None,
    departed: AwaitDeparture = lambda _group: "",
) -> tuple[SliceRecord, SliceWindow]:
    """One slice of a variant: its record, and the operations in its window.

    Without a host, no CPU account. The account is closed when the backends of the slice have left,
    so that it contains their end and the next slice does not.
    """
    started_ns = time.monotonic_ns()
    request, accounting = begin(group, request, host)
    recorded = group.collect(request)
    still_there = departed(group)
    account = closed(group, accounting)
    place = SlicePlace(round_, position, started_ns)
    return slice_record(group, request, recorded, place, account, still_there)


def begin(
    group: ClientGroup, request: protocol.Slice, host: Host | None
) -> tuple[protocol.Slice, SliceAccounting | None]:
    """Start a slice: the request that was sent, and its open CPU accounting.

    Armed clients sleep until their start, so the accounting is opened again right before it, if
    there is time. Raises LoadHostLate for a slice whose start was given and has passed.
    """
    accounting = SliceAccounting(host, group.processes()) if host else None
    given_ns = request.start_ns
    request = armed(group, request)
    group.begin(request)
    if given_ns and time.monotonic_ns() > given_ns:
        raise LoadHostLate(f"{group.variant.label}: its start had passed")
    if host and request.start_ns:
        opens_ns = request.start_ns - _READ_NS - _READ_EACH_NS * group.variant.connections
        time.sleep(max(0, opens_ns - time.monotonic_ns()) / 1e9)
        later = SliceAccounting(host, group.processes())
        accounting = later if time.monotonic_ns() < request.start_ns else accounting
    return request, accounting


def armed(group: ClientGroup, request: protocol.Slice) -> protocol.Slice:
    """The slice with a common start, if none was given. One connection on this machine needs none
    without a schedule; load hosts always need one.
    """
    alone = group.variant.connections == 1 and not group.variant.hosts
    if request.start_ns or (alone and not request.rate):
        return request
    group.settle(request)
    return request._replace(start_ns=time.monotonic_ns() + group.arming_ns(request))


def closed(
    group: ClientGroup, accounting: SliceAccounting | None, by_ns: int | None = None
) -> SliceAccount | None:
    """The account of a slice that has ended, as far as it was opened. None if it was closed after
    `by_ns`, so that it has a part of the next slice.
    """
    if accounting is None:
        return None
    account = accounting.close()
    if by_ns is not None and time.monotonic_ns() > by_ns:
        group.totals.lack_a_slice()
        return None
    group.totals.add(account)
    group.look_again |= group.backends_pass and accounting.new_processes()
    group.look_again |= accounting.lost_processes(account)
    return account


def slice_record(
    group: ClientGroup,
    request: protocol.Slice,
    recorded: Recorded,
    place: SlicePlace,
    account: SliceAccount | None,
    still_there: str = "",
) -> tuple[SliceRecord, SliceWindow]:
    """The record of a slice, from what its clients recorded and its CPU account.

    Raises ProtocolError if they cannot have recorded that.
    """
    slice_replies.check(request, *recorded)
    replies = recorded.replies
    window = SliceWindow.of(request, *recorded)
    record = SliceRecord(
        round=place.round,
        position=place.position,
        ops=window.ops,
        rows=_rows(replies, window.ops),
        errors=sum(window.errors.values()),
        new_connections=window.new_connections,
        lead_in_ops=sum(r.lead_in_ops + r.ops for r in replies) - window.ops,
        window_ns=window.length_ns,
        us_per_op=window.us_per_op(group.variant.clients),
        ops_per_s=window.ops / window.length_ns * 1e9 if window.length_ns else 0.0,
        user_ns=sum(r.user_ns for r in replies),
        sys_ns=sum(r.sys_ns for r in replies),
        started_ns=place.started_ns,
        disturbed="; ".join(filter(None, (window.disturbed, still_there))),
        **(_account_fields(group, account, window.ops, replies) if account else _unaccounted(group)),
        **{f"{name}_ns": int(part.sum()) for name, part in window.by_phase().items()},
        **(asdict(window.scheduled) if window.scheduled else {}),
    )
    return record, window


def _unaccounted(group: ClientGroup) -> dict[str, int | None]:
    """The fields that are 0 unless they are unknown, of a slice without an account."""
    return {} if group.web == NO_WEB_SERVER else dict.fromkeys(_OF_WEB_SERVERS)


def _account_fields(
    group: ClientGroup, account: SliceAccount, ops: int, replies: Sequence[protocol.SliceReply]
) -> dict[str, int | None]:
    """The CPU fields of a slice.

    If the known backends used no CPU time, others may have served it: the server is unknown. Where the
    kernel counts in clock ticks, and so no waits, none is usual in a short slice. Backends that pass
    are not known one by one. A client whose load comes from a process of its own knows that one's CPU
    time.
    """
    fields = account.fields()
    if group.variant.is_one_process:
        fields |= {"client_ns": sum(reply.user_ns + reply.sys_ns for reply in replies)}
        group.totals.tools_ns += fields["client_ns"] or 0
    in_ticks = fields["server_wait_ns"] is None
    idle = ops and group.server_pids and fields["server_ns"] == 0 and not in_ticks
    if not idle or group.backends_pass or _may_ask_nothing(group):
        return fields
    group.look_again = True
    return fields | dict.fromkeys(("server_ns", "server_wait_ns", "server_busiest_ns"))


def _may_ask_nothing(group: ClientGroup) -> bool:
    """May its operations leave all its backends idle? A page may need no query. A pooler may use
    another connection.
    """
    return layers.requests_pages(group.variant.layer) and not group.pooled


def _rows(replies: Sequence[protocol.SliceReply], ops: int) -> int | None:
    """The rows of so many operations; None where a client does not count them."""
    counted = [reply.rows for reply in replies if reply.rows is not None]
    if len(counted) < len(replies):
        return None
    return round(sum(counted) * ops / max(1, sum(reply.ops for reply in replies)))
