"""Figures of a kept run with their 95 % intervals: throughputs, ratios of times, geometric means.

A run is the JSON object of `pgperf run --json`. What a run does not know is None.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

from benchmarks.published import Row, Run
from pgperf.analysis.paired_statistics import Estimate
from pgperf.analysis.samples import difference

CONFIDENCE = 0.95


def variant(run: Run, **fields: object) -> Row | None:
    """The measured variant with these fields; no control."""
    found = (row for row in run["variants"] if not row["control"] and row["us_per_op"])
    return next((row for row in found if all(row[name] == value for name, value in fields.items())), None)


def disturbance(row: Row) -> float | None:
    """The most that steal and other processes have of the variant's time, a share; None if that is not
    known.
    """
    share: float | None = (row["verdict"].get("grade") or {}).get("share")
    return share


def known_disturbance(row: Row) -> float:
    """The same. Where it is not known, of those disturbances that are: there may be more."""
    share = disturbance(row)
    if share is not None:
        return share
    found, us = (row["verdict"].get("grade") or {}).get("disturbances") or (), row["us_per_op"]
    return min(1.0, sum(each["us"] or 0.0 for each in found) / us) if us else 0.0


def us_per_op(row: Row) -> Estimate:
    """The time that one connection needs for an operation, µs."""
    return _estimate(row["us_per_op"], row["us_per_op_low"], row["us_per_op_high"])


def ms_per_op(row: Row) -> Estimate:
    """The same, ms."""
    us = us_per_op(row)
    low, high = (None if end is None else end / 1000 for end in (us.low, us.high))
    return replace(us, centre=us.centre / 1000, low=low, high=high)


def per_s(row: Row, rate: str = "ops_per_s") -> Estimate | None:
    """A rate of the variant, such as its operations per second, as certain as its time is."""
    us, centre = us_per_op(row), row[rate]
    if centre is None:
        return None
    if not us.low or us.high is None:
        return _estimate(centre, None, None)
    return _estimate(centre, centre * us.centre / us.high, centre * us.centre / us.low)


def ratio(run: Run, row: Row, other: Row) -> Estimate:
    """Time per operation over the other's.

    That of the run's own comparison, or else from both times as if they were independent.
    """
    for each in run["comparisons"]:
        found = _estimate(each["ratio"], each["low"], each["high"])
        if (each["variant"], each["baseline"]) == (row["label"], other["label"]):
            return found
        if (each["variant"], each["baseline"]) == (other["label"], row["label"]):
            return inverse(found)
    return difference(_log(us_per_op(row)), _log(us_per_op(other))).exp()


def disturbed_ratio(run: Run, row: Row, other: Row) -> Estimate:
    """The same ratio. Its interval contains what it would be without the disturbances of either, and
    is not known where they are not.
    """
    found, ours, theirs = ratio(run, row, other), disturbance(row), disturbance(other)
    if found.low is None or found.high is None or ours is None or theirs is None or max(ours, theirs) >= 1:
        return _estimate(found.centre, None, None)
    return _estimate(found.centre, found.low * (1 - ours), found.high / (1 - theirs))


def inverse(estimate: Estimate) -> Estimate:
    """1 over a positive ratio."""
    return _negated(_log(estimate)).exp()


def geometric_mean(estimates: Sequence[Estimate]) -> Estimate:
    """Of one or more positive, independent estimates: on each side their distances add as squares."""
    first, *others = map(_log, estimates)
    total = reduce(lambda found, each: difference(found, _negated(each)), others, first)
    return _divided(total, len(estimates)).exp()


def _negated(log: Estimate) -> Estimate:
    low, high = (None if end is None else -end for end in (log.high, log.low))
    return replace(log, centre=-log.centre, low=low, high=high)


def _divided(log: Estimate, count: int) -> Estimate:
    low, high = (None if end is None else end / count for end in (log.low, log.high))
    return replace(log, centre=log.centre / count, low=low, high=high)


def _log(estimate: Estimate) -> Estimate:
    """Without an interval if that reaches 0."""
    if not estimate.low or not estimate.high:
        return _estimate(math.log(estimate.centre), None, None)
    return _estimate(math.log(estimate.centre), math.log(estimate.low), math.log(estimate.high))


def _estimate(centre: float, low: float | None, high: float | None) -> Estimate:
    known = low is not None and high is not None
    return Estimate(centre, low if known else None, high if known else None, 1, CONFIDENCE if known else 0.0)


def text(estimate: Estimate | None, digits: int = 2) -> str:
    """For a table: the centre and its interval."""
    if estimate is None:
        return "not measured"
    if estimate.low is None or estimate.high is None:
        return f"{estimate.centre:,.{digits}f} (no interval)"
    return f"{estimate.centre:,.{digits}f} ({estimate.low:,.{digits}f} to {estimate.high:,.{digits}f})"
