"""The time of each statement of an operation: each one alone, in slices of their own.

They run after the diagnostic slices, over the variants' own connections, one client
each. Statements with the same text but other values are measured once.
"""

from pgperf.core import layers, protocol
from pgperf.core.client_environment import DEFAULT
from pgperf.core.records import StatementTime, Variant, WorkloadDefinition
from pgperf.core.sql_masking import masked
from pgperf.runner.client_group import ClientGroup
from pgperf.runner.cpu.accounting import SliceAccounting
from pgperf.runner.cpu.host import Host
from pgperf.runner.slice_window import time_per_op_us

_WINDOW_NS = 50_000_000
_LEAD_IN = 5
_SLOW_S = 0.2
#: Statements with different texts that are measured; those after them are not.
MOST_TEXTS = 50


def distinct(work: WorkloadDefinition) -> list[tuple[int, ...]]:
    """The places of each text in the operation, in the order of their first place."""
    places: dict[str, list[int]] = {}
    for number, statement in enumerate(work.statements, 1):
        places.setdefault(masked(statement.literal), []).append(number)
    return [tuple(each) for each in places.values()]


def are_timed(variant: Variant, work: WorkloadDefinition) -> bool:
    """Is the variant one whose statements can be run alone, and has it several?"""
    plain = variant.connections == 1 and variant.connect == "persistent" and not variant.control
    plain = plain and variant.environment == DEFAULT and not variant.is_open_loop
    plain = plain and not variant.hosts
    whole = layers.runs_tool(variant.layer) or not layers.runs_statements(variant.layer)
    return plain and not whole and len(work.statements) > 1


def predicted_s(variant: Variant, work: WorkloadDefinition) -> float:
    """The least wall time of `measured`, with what an earlier run knows of the operation; 0 for a
    variant whose statements are not timed.
    """
    if not are_timed(variant, work):
        return 0.0
    operations = _lead_in(work.op_s) + 1
    return max(min(MOST_TEXTS, len(distinct(work))) * _WINDOW_NS / 1e9, operations * work.op_s)


def measured(group: ClientGroup, work: WorkloadDefinition, host: Host) -> tuple[StatementTime, ...]:
    """Every distinct statement of the workload over the group's connection, one after the other."""
    return tuple(_measure(group, numbers, host) for numbers in distinct(work)[:MOST_TEXTS])


def _lead_in(op_s: float) -> int:
    """The calls before a statement is timed: one where the whole operation is slow."""
    return _LEAD_IN if op_s < _SLOW_S else 1


def _measure(group: ClientGroup, numbers: tuple[int, ...], host: Host) -> StatementTime:
    request = protocol.Slice(
        seq=numbers[0],
        lead_in_ops=_lead_in(group.op_s),
        lead_in_ns=0,
        window_ns=_WINDOW_NS,
        statement=numbers[0],
    )
    accounting = SliceAccounting(host, group.processes())
    recorded = group.run(request)
    server_ns = accounting.close().fields()["server_ns"]
    (reply,), (durations,) = recorded.replies, recorded.durations
    ran = reply.ops + reply.lead_in_ops
    server_us = server_ns / ran / 1000 if server_ns and ran else None
    return StatementTime(numbers, time_per_op_us(durations), server_us)
