"""Times and shares as text. Pure."""

from pgperf.core.time_units import MICROSECONDS, TimeUnit, decimals, unit_of


def in_unit(us: float, unit: TimeUnit) -> str:
    """A time, in µs, as a number in this unit with as many digits as it is worth."""
    value = us / unit.us
    return f"{value:,.{_few(value) if unit is MICROSECONDS else decimals(value, unit.decimals)}f}"


def in_one_unit(*times_us: float | None) -> tuple[str, ...]:
    """The times of one sentence in the unit of the longest, whose symbol comes last; None reads 0."""
    unit = unit_of(times_us)
    return *(in_unit(us or 0.0, unit) for us in times_us), unit.name


def in_percent(share: float, decimals: int = 0) -> str:
    """A share of 1: 0.934 as "93 %"."""
    return f"{share * 100:.{decimals}f} %"


def _few(value: float) -> int:
    return 0 if abs(value) >= 10 else 1 if abs(value) >= 1 else 2
