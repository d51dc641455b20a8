"""Ladders: libpq, a driver, the Django cursor and the Django ORM on that driver, or the view of a page
and the web servers above it; what each step costs.

Django climbs on the driver that it uses, and where that is psycopg 3 a second ladder may stand on
psycopg2. Both have libpq for their ground.

All figures come from the run's fit (`pgperf.analysis.fit`): a step is the difference of the times of
two rungs, and a ratio their quotient.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any, Self

from pgperf.analysis.fit import Fit
from pgperf.analysis.outcome import CONFIDENCE
from pgperf.analysis.paired_statistics import Estimate
from pgperf.core.client_environment import DEFAULT
from pgperf.core.layers import LAYERS, Layer, Rung
from pgperf.core.records import Variant


@dataclass(frozen=True)
class Step:
    """One rung: `us` per operation, `step_us` above the rung below, `ratio` over the first rung.

    The first rung is its own step, and its ratio is 1. `low` and `high` are the ends of 95 %
    intervals, None if unknown. `server`: the route of a web server, "" for a rung on the route of the
    ladder.
    """

    layer: str
    label: str
    us: float
    low: float | None
    high: float | None
    step_us: float
    step_low_us: float | None
    step_high_us: float | None
    ratio: float
    ratio_low: float | None
    ratio_high: float | None
    server: str = ""


@dataclass(frozen=True)
class Ladder:
    """Rungs that stand on each other, lowest first, and in `side` the layers beside them.

    A layer beside them is one step above the first rung. `driver` is the one that Django uses.
    `clients` is the number of connections: those of one process with several workers, or of as many
    processes. The variants of all rungs share the other fields; those of web servers above a view
    have routes of their own.
    """

    workload: str
    route: str
    mode: str
    clients: int
    placement: str
    driver: str
    steps: tuple[Step, ...]
    side: tuple[Step, ...] = ()
    workers: int = 1  # the most that a client process of its variants has
    connect: str = "persistent"
    environment: str = DEFAULT
    rate: float | None = None  # operations/s of an open loop; None: closed loop
    schedule: str = ""
    hosts: int = 0  # load hosts of the clients

    def has(self, variant: Variant) -> bool:
        """Is the variant one of its rungs, or beside them?"""
        return any(step.label == variant.label for step in (*self.steps, *self.side))

    def to_json(self) -> dict[str, Any]:
        steps, side = ([asdict(step) for step in each] for each in (self.steps, self.side))
        return {**asdict(self), "steps": steps, "side": side}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        rungs = {name: tuple(Step(**step) for step in data[name]) for name in ("steps", "side")}
        return cls(**{**data, **rungs})


def climbs(variants: Sequence[Variant], django_driver: str) -> dict[str, list[Variant]]:
    """Driver -> those of the variants that stand on each other, lowest first; Django's own driver
    comes first.

    A driver by itself makes no second ladder: it stands beside the first one.
    """
    known = [variant for variant in variants if variant.layer in LAYERS]
    others = [driver for variant in known if (driver := LAYERS[variant.layer].driver)]
    return {
        driver: sorted(
            (variant for variant in known if _stands_on(LAYERS[variant.layer], driver, django_driver)),
            key=lambda variant: LAYERS[variant.layer].rung,
        )
        for driver in dict.fromkeys((django_driver, *others))
    }


def _stands_on(layer: Layer, driver: str, django_driver: str) -> bool:
    """Is the layer a rung of the driver's ladder?"""
    if layer.rung == Rung.CLIENT_LIBRARY or layer.name == driver:
        return True
    return layer.rung > Rung.DRIVER and layer.driver == ("" if driver == django_driver else driver)


def ladders(fit: Fit, variants: Sequence[Variant], django_driver: str) -> list[Ladder]:
    """The ladders of variants that differ in their layer only, but for web servers, which stand on
    each other in their order; none without a measured rung.

    `steps[k].us` is the sum of `step_us` up to k. Layers on no ladder stand beside the first one.
    """
    measured = [variant for variant in variants if variant in fit]
    climbed = [(d, _comparable(fit, rungs)) for d, rungs in climbs(measured, django_driver).items()]
    found = [(driver, rungs) for driver, rungs in climbed if len(rungs) > 1] or climbed[:1]
    standing = {variant for _, rungs in found for variant in rungs}
    beside = [variant for variant in measured if variant not in standing]
    return [
        _ladder(fit, driver, rungs, [] if at else beside) for at, (driver, rungs) in enumerate(found) if rungs
    ]


def _ladder(fit: Fit, driver: str, climbed: list[Variant], beside: list[Variant]) -> Ladder:
    first = climbed[0]
    comparable = [variant for variant in beside if fit.paired(variant, first)]
    return Ladder(
        first.workload,
        first.route,
        first.mode,
        first.connections,
        first.placement,
        driver,
        steps=tuple(_steps(fit, climbed)),
        side=tuple(_steps(fit, [first, variant])[1] for variant in comparable),
        workers=max(variant.workers for variant in (*climbed, *comparable)),
        connect=first.connect,
        environment=first.environment,
        rate=first.rate,
        schedule=first.schedule,
        hosts=first.hosts,
    )


def _comparable(fit: Fit, candidates: list[Variant]) -> list[Variant]:
    """The candidates without those that cannot be compared with one below them."""
    kept: list[Variant] = []
    for variant in candidates:
        if all(fit.paired(variant, lower) for lower in kept):
            kept.append(variant)
    return kept


def _steps(fit: Fit, climbed: list[Variant]) -> list[Step]:
    first = climbed[0]
    above = (_step(fit, variant, below, first) for below, variant in pairwise(climbed))
    return [_first_step(first, fit.level(first)), *above]


def _first_step(first: Variant, us: Estimate) -> Step:
    ends = us.low, us.high
    return Step(first.layer, first.label, us.centre, *ends, us.centre, *ends, 1.0, *_exactly(1.0, us))


def _step(fit: Fit, variant: Variant, below: Variant, first: Variant) -> Step:
    us, step, over = fit.level(variant), fit.paired(variant, below), fit.paired(variant, first)
    assert step is not None  # else _comparable had left it out
    assert over is not None
    step_us, ratio = step.delta.at(CONFIDENCE), over.log.at(CONFIDENCE).exp()
    return Step(
        layer=variant.layer,
        label=variant.label,
        us=us.centre,
        low=us.low,
        high=us.high,
        step_us=step_us.centre,
        step_low_us=step_us.low,
        step_high_us=step_us.high,
        ratio=ratio.centre,
        ratio_low=ratio.low,
        ratio_high=ratio.high,
        server="" if variant.route == first.route else variant.route,
    )


def _exactly(value: float, like: Estimate) -> tuple[float | None, float | None]:
    """Both ends of the interval of a value that is known."""
    return (None, None) if like.low is None else (value, value)
