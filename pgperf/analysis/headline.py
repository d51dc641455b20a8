"""The headline figure of a run: the time per operation of its topmost layer, at the most clients,
over its first route.
"""

import statistics
from collections.abc import Sequence

from pgperf.core.layers import LAYERS
from pgperf.core.records import Variant

_LAYERS = list(LAYERS)
#: With more workloads, a run is a suite, whose workloads share the headline.
_MOST_WORKLOADS = 2


def height(variant: Variant) -> tuple[int, bool, int]:
    """Its connections, then whether its loop is closed, as in ladders, then the place of its layer."""
    place = _LAYERS.index(variant.layer) if variant.layer in LAYERS else len(_LAYERS)
    return variant.connections, not variant.rate, place


def headline(variants: Sequence[Variant]) -> list[Variant]:
    """Those that the headline figure of a run is of: one, or one for each workload of a suite.

    `variants`: one or more, in the order of the run's page, without controls.
    """
    route = variants[0].route
    on_route = [each for each in variants if each.route == route]
    last = max(reversed(on_route), key=height)
    is_suite = len({each.workload for each in variants}) > _MOST_WORKLOADS
    if not is_suite:
        return [last]
    return [each for each in on_route if not last.differs_in(each) - {"workload"}]


def figure(times_us: Sequence[float | None]) -> float | None:
    """The time in µs, or the geometric mean of several; None where one is not known."""
    known = [us for us in times_us if us]
    if len(times_us) == 1:
        return times_us[0]
    return statistics.geometric_mean(known) if known and len(known) == len(times_us) else None
