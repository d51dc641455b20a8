"""The parts of a page's time: template, query compilation, object construction, statements, rest.

They are measured by instruments inside the client, after the diagnostic slices.
"""

from pgperf.core import layers, protocol
from pgperf.core.client_environment import DEFAULT
from pgperf.core.records import PageParts, Variant
from pgperf.runner.client_group import SLICE_GRACE_S, ClientGroup

#: For how long a client runs the page with instruments, and as long without them.
_SECONDS = 0.5
_MOST, _LEAST = 200, 3


def are_measured(variant: Variant) -> bool:
    """Is the variant one whose client has instruments?"""
    plain = variant.connections == 1 and not variant.control and not variant.is_open_loop
    plain = plain and variant.environment == DEFAULT and not variant.hosts
    return plain and layers.has_instruments(variant.layer)


def predicted_s(variant: Variant) -> float:
    """The wall time of `measured`, where an operation is not slow; 0 for a variant without."""
    return 2 * _SECONDS if are_measured(variant) else 0.0


def measured(group: ClientGroup) -> PageParts:
    """The parts of one variant's operation."""
    fitting = int(_SECONDS / group.op_s) if group.op_s else _LEAST
    operations = min(_MOST, max(_LEAST, fitting))
    (client,) = group.clients
    client.send(protocol.Instrument(operations))
    found = client.expect(protocol.Instrumented, SLICE_GRACE_S + 8 * operations * group.op_s)
    variant = group.variant
    return PageParts(variant.workload, variant.route, variant.mode, found.parts_us, found.plain_us)
