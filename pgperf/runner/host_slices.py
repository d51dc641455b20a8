"""What a load host records of the slices that it was ordered to run, packed for a row.

Replies are lines of the wire protocol, in the order of the host's clients. The numbers that follow
each reply are those of all slices in the same order, compressed together.
"""

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pgperf.core import protocol
from pgperf.core.exceptions import LoadHostLate, ProtocolError
from pgperf.runner.client_group import ClientGroup
from pgperf.runner.cpu import network
from pgperf.runner.cpu.host import Host
from pgperf.runner.slice_window import Durations, Recorded
from pgperf.runner.timed_slice import begin, closed

#: Of an order's slices, packed and unpacked: a forged row must not exhaust the owner's memory.
MAX_PACKED_BYTES, MAX_UNPACKED_BYTES = 64 << 20, 512 << 20
#: The parts of a slice's record that a load host knows.
CPU_FIELDS = (
    "elapsed_ns", "host_ns", "iowait_ns", "steal_ns", "runner_ns", "client_ns", "client_wait_ns",
    "client_busiest_ns", "network_bytes",
)  # fmt: skip
_MOST_NS = 2**62
#: The quickest compression: an answer is awaited.
_LEVEL = 1


@dataclass(frozen=True)
class HostSlice:
    """One slice on one load host: what its clients recorded, and the CPU time of that machine."""

    recorded: Recorded
    cpu: Mapping[str, int | None]


def run(group: ClientGroup, request: protocol.Slice, host: Host | None) -> HostSlice:
    """Run the host's part of a slice, which begins at a given time. Without a host, no CPU time.

    Raises LoadHostLate if that has passed.
    """
    try:
        request, accounting = begin(group, request, host)
    except LoadHostLate:
        group.collect(request)  # the clients have begun it, however late
        raise
    sent = network.so_far()  # as late as the CPU time: the slice waits for its start before
    recorded = group.collect(request)
    account = closed(group, accounting)
    fields = {
        **(account.fields() if account else {}),
        "network_bytes": network.bytes_between(sent, network.so_far()),
    }
    return HostSlice(recorded, {name: fields.get(name) for name in CPU_FIELDS})


NOTHING = HostSlice(Recorded([], [], []), {})


def pack(slices: Iterable[HostSlice]) -> tuple[list[dict[str, Any]], bytes]:
    """The slices as JSON, and their numbers."""
    lines, numbers = [], []
    for each in slices:
        replies = [protocol.encode(reply).decode() for reply in each.recorded.replies]
        lines.append({"replies": replies, "cpu": dict(each.cpu)})
        rows = zip(each.recorded.durations, each.recorded.phases, strict=True)
        numbers += [part.tobytes() for durations, phases in rows for part in (durations, phases)]
    return lines, zlib.compress(b"".join(numbers), _LEVEL)


def unpack(lines: Sequence[Any], packed: bytes) -> list[HostSlice]:
    """What `pack` gave. Raises ProtocolError for anything else."""
    try:
        numbers = np.frombuffer(_unzipped(packed), dtype="<u8")
        replies = [[_reply(line) for line in each["replies"]] for each in lines]
        cpu = [_cpu(each["cpu"]) for each in lines]
    except (zlib.error, TypeError, LookupError, ValueError, AttributeError) as error:
        raise ProtocolError(f"its slices cannot be read ({type(error).__name__})") from error
    announced = sum(reply.nbytes // 8 for own in replies for reply in own)
    if announced != len(numbers):
        raise ProtocolError(f"its slices have {len(numbers)} numbers, and their replies announce {announced}")
    rest = iter(_split([reply for own in replies for reply in own], numbers))
    return [
        HostSlice(_recorded(own, [next(rest) for _ in own]), used)
        for own, used in zip(replies, cpu, strict=True)
    ]


def _split(replies: Sequence[protocol.SliceReply], numbers: Durations) -> list[Durations]:
    """The numbers of each reply: a row of durations, then one for each phase."""
    ends = np.cumsum([reply.nbytes // 8 for reply in replies], dtype=np.int64)
    parts = np.split(numbers, ends[:-1]) if replies else []
    return [part.reshape(1 + len(reply.phases), -1) for part, reply in zip(parts, replies, strict=True)]


def _recorded(replies: list[protocol.SliceReply], rows: Sequence[Durations]) -> Recorded:
    return Recorded(replies, [each[0] for each in rows], [each[1:] for each in rows])


def _unzipped(packed: bytes) -> bytes:
    unpacking = zlib.decompressobj()
    data = unpacking.decompress(packed, MAX_UNPACKED_BYTES)
    if not unpacking.eof or len(data) % 8:
        raise ValueError("truncated or too large")
    return data


def _reply(line: str) -> protocol.SliceReply:
    reply = protocol.decode(line.encode())
    if not isinstance(reply, protocol.SliceReply) or reply.nbytes < 0:
        raise ValueError("not the reply to a slice")
    if reply.nbytes % (8 * (1 + len(reply.phases))):
        raise ValueError("not the reply to a slice")
    return reply


def _cpu(stored: Mapping[str, Any]) -> dict[str, int | None]:
    found = {name: stored.get(name) for name in CPU_FIELDS}
    if any(ns is not None and (type(ns) is not int or abs(ns) > _MOST_NS) for ns in found.values()):
        raise ValueError("CPU time is a whole number")
    return found
