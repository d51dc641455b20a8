"""Warms up the clients of a block."""

from collections.abc import Sequence

from pgperf.core import protocol
from pgperf.core.records import Definition
from pgperf.runner.client_group import ClientGroup
from pgperf.runner.load_hosts import HostedGroup
from pgperf.runner.plan import warm_up_turns
from pgperf.runner.slice_length import warm_up_most_s

_TRIAL = protocol.Slice(seq=0, lead_in_ops=1, lead_in_ns=0, count=2)


def warm_up(definition: Definition, groups: Sequence[ClientGroup]) -> None:
    """Warm up the clients of this machine, as many at the same time as can be, to save wall time.

    Slow operations get a smaller count.
    """
    owners = {group.variant: group for group in groups if not (group.owner or isinstance(group, HostedGroup))}
    for turn in warm_up_turns(owners):
        _warm_up_together(definition, [owners[variant] for variant in turn])
    for group in groups:
        group.op_s = group.owner.op_s if group.owner else group.op_s


def _warm_up_together(definition: Definition, groups: Sequence[ClientGroup]) -> None:
    for group in groups:
        group.begin(_TRIAL)
    for group in groups:
        group.calibrate(_TRIAL)
    requests = [_warm_up_of(definition, group) for group in groups]
    for group, request in zip(groups, requests, strict=True):
        group.begin(request)
    for group, request in zip(groups, requests, strict=True):
        group.collect(request)


def _warm_up_of(definition: Definition, group: ClientGroup) -> protocol.Slice:
    most = int(warm_up_most_s(definition) / group.op_s) if group.op_s else definition.warm_up_ops
    ops = max(1, min(definition.warm_up_ops, most))
    return protocol.Slice(
        seq=0, start_ns=0, lead_in_ops=ops, lead_in_ns=definition.warm_up_ms * 1_000_000, window_ns=0, count=1
    )
