"""The geometric mean of a suite: one ratio per layer over all its workloads, from the blocks.

Only workloads that every layer has take part, so that all layers are judged by the same work. A
guest, in a mode of its own, takes no workload from the others.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import zip_longest
from typing import Any, Self

import numpy as np

from pgperf.analysis.fit import Fit, Pair
from pgperf.analysis.layer_groups import base_of, with_guests
from pgperf.analysis.outcome import CONFIDENCE
from pgperf.analysis.paired_comparisons import Measurements, PairedDifference
from pgperf.analysis.paired_statistics import hodges_lehmann
from pgperf.analysis.samples import BLOCKS, Sample
from pgperf.core.client_environment import DEFAULT
from pgperf.core.records import Definition, Variant

#: Layer -> variant, of one workload.
Row = dict[str, Variant]


@dataclass(frozen=True)
class GeometricMean:
    """A layer over the base layer: the geometric mean of the time ratios of `workloads`.

    `low` to `high` is its 95 % interval, None if there are too few values. `blocks` counts those in
    which all of the workloads were measured; `sample` is "blocks", or "rounds" for a single block.
    """

    layer: str
    base: str
    mode: str
    route: str
    clients: int
    workers: int
    connect: str
    workloads: tuple[str, ...]
    ratio: float
    low: float | None
    high: float | None
    blocks: int
    sample: str
    environment: str = DEFAULT
    rate: float | None = None  # operations/s of an open loop; None: closed loop
    hosts: int = 0  # load hosts of the clients
    base_mode: str = ""  # of the base; "" in runs before it was kept: that of the layer

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "workloads": list(self.workloads)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        return cls(**{**data, "workloads": tuple(data["workloads"])})


def geometric_means(definition: Definition, fit: Fit, originals: Sequence[Variant]) -> list[GeometricMean]:
    """One for each layer of a suite but the base layer, route by route; none for other runs."""
    if not definition.is_suite:
        return []
    measured = [variant for variant in originals if variant in fit]
    return [mean for rows in _settings(measured) for mean in _means(fit, rows)]


def _settings(variants: Sequence[Variant]) -> list[list[Row]]:
    """The rows of all workloads, in groups that differ in layer and workload only. Guests are last."""
    found: dict[tuple[Variant, int], list[Row]] = {}
    for group, guests in with_guests(variants):
        first = group[0]
        alike = replace(first, workload="", layer="", clients=first.connections, workers=1)
        again = sum(first.workload in _names(rows) for (of, _), rows in found.items() if of == alike)
        found.setdefault((alike, again), []).append({variant.layer: variant for variant in (*group, *guests)})
    return list(found.values())


def _names(rows: Iterable[Row]) -> set[str]:
    return {variant.workload for row in rows for variant in row.values()}


def _means(fit: Fit, rows: Sequence[Row]) -> Iterator[GeometricMean]:
    mode = next(iter(rows[0].values())).mode
    own = {layer for row in rows for layer, variant in row.items() if variant.mode == mode}
    whole = [row for row in rows if own <= row.keys()]
    if not whole:
        return
    base = base_of([variant for variant in whole[0].values() if variant.mode == mode]).layer
    for layer in whole[0]:
        if layer == base or not all(layer in row for row in whole):
            continue
        pairs = [(row[layer], row[base]) for row in whole]
        if found := _difference(fit.measurements, pairs):
            yield _mean(fit, pairs, found)


def _difference(measurements: Measurements, pairs: Sequence[Pair]) -> PairedDifference | None:
    """The mean log ratio of the pairs. Of a pair that shared no round, the log ratios over a third
    variant count: the first one's in the sample, and the base's in `via`.
    """
    ratios = [measurements.log_ratios(*pair) for pair in pairs]
    if not all(ratios):
        return None
    sides = [[each for each in side if each] for side in zip_longest(*ratios)]
    samples = [sample for side in sides if (sample := _sample(measurements, side, len(ratios)))]
    return PairedDifference.of(samples) if len(samples) == len(sides) else None


def _sample(
    measurements: Measurements, ratios: Sequence[Mapping[int, np.ndarray]], count: int
) -> Sample | None:
    """The sum of the log ratios, over `count`, in each block that has all of them; of one block, in
    each round.
    """
    shared = [block for block in ratios[0] if all(block in each for each in ratios)]
    if not shared:
        return None
    if len(shared) == 1:
        return _of_rounds(measurements, [each[shared[0]] for each in ratios], count)
    means = [sum(hodges_lehmann(each[block]) for each in ratios) / count for block in shared]
    return replace(measurements.sample([np.array([mean]) for mean in means]), observations=len(means))


def _of_rounds(measurements: Measurements, ratios: Sequence[np.ndarray], count: int) -> Sample:
    """The rounds that every workload has; each has them from its first on."""
    rounds = min(map(len, ratios))
    return measurements.sample([np.sum([each[:rounds] for each in ratios], axis=0) / count])


def _mean(fit: Fit, pairs: Sequence[Pair], difference: PairedDifference) -> GeometricMean:
    variant, base = pairs[0]
    centre = float(np.mean([fit.logs[own] - fit.logs[other] for own, other in pairs]))
    found = difference.moved_to(centre).at(CONFIDENCE).exp()
    return GeometricMean(
        layer=variant.layer,
        base=base.layer,
        mode=variant.mode,
        route=variant.route,
        clients=variant.clients,
        workers=variant.workers,
        connect=variant.connect,
        workloads=tuple(variant.workload for variant, _base in pairs),
        ratio=found.centre,
        low=found.low,
        high=found.high,
        blocks=difference.pairs if difference.kind == BLOCKS else 1,
        sample=difference.kind,
        environment=variant.environment,
        rate=variant.rate,
        hosts=variant.hosts,
        base_mode=base.mode,
    )
