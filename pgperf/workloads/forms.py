"""The forms of the site's own workloads: functions, async functions, or both."""

from collections.abc import Iterator

from pgperf import registry
from pgperf.core import layers
from pgperf.core.exceptions import InvalidDefinition
from pgperf.core.records import Definition, LeftOut, WorkloadDefinition


def lacking(definition: Definition) -> Iterator[LeftOut]:
    """The layers that a workload has no function for, with the reason.

    The site's workloads must be discovered. One that is not registered has other errors.
    """
    for work in definition.workloads:
        for layer in filter(layers.calls_orm, definition.layers):
            if reason := _reason(work, layer):
                yield LeftOut(workload=work.name, layer=layer, reason=reason)


def _reason(work: WorkloadDefinition, layer: str) -> str:
    look_up = registry.get_async if layers.is_async(layer) else registry.get
    known = registry.names()
    try:
        for name in (work.orm, work.other_orm):
            if name in known:
                look_up(name)
    except InvalidDefinition as error:
        return str(error)
    return ""
