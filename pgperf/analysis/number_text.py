"""Times and shares as text. Pure."""


def in_us(value: float) -> str:
    """A time in µs with as many digits as it is worth."""
    return f"{value:,.{0 if abs(value) >= 10 else 1 if abs(value) >= 1 else 2}f}"


def in_percent(share: float, decimals: int = 0) -> str:
    """A share of 1: 0.934 as "93 %"."""
    return f"{share * 100:.{decimals}f} %"
