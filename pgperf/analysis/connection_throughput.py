"""The throughput of a variant whose operations connect, with and without the time for connecting.

All figures come from the variant's summary, so they can be checked against its page. Pure.
"""

from dataclasses import asdict, dataclass
from typing import Self

from pgperf.analysis.variant_summary import VariantSummary

#: The old formula divides by what connecting leaves of the wall time. Below this share of it, noise
#: decides the result.
LEAST_REST = 0.05


@dataclass(frozen=True)
class ConnectionThroughput:
    """Operations per second; None for what is not known.

    `excluding`: while no client connects or closes, N / O for N clients that operate for O seconds
    on average. `excluding_pgbench`: by the formula of pgbench before version 14, count / (wall time
    - time of all connects / N). With mean times C, O and D of connecting, operating and closing,
    that is N / (O + D). None where less than a twentieth of C + O + D is left, and where closing is
    not known apart from connecting. Both come from the same means, so closing alone parts them.
    At a rate both are None: clients wait for their schedule, whatever an operation takes.
    """

    including: float | None
    excluding: float | None
    excluding_pgbench: float | None

    @classmethod
    def of(cls, variant: VariantSummary) -> Self | None:
        """None for a variant that keeps its connections, and for HTTP requests."""
        if not variant.phases_us.get("operate"):
            return None
        if variant.rate is not None:
            return cls(including=variant.ops_per_s, excluding=None, excluding_pgbench=None)
        means = {name: figures.get("mean") for name, figures in variant.phases_us.items()}
        clients = variant.clients * variant.workers
        operate_us = means.get("operate")
        rest_us = _rest_us(means.get("connect"), operate_us, means.get("close"))
        return cls(
            including=variant.ops_per_s,
            excluding=clients / operate_us * 1e6 if operate_us else None,
            excluding_pgbench=clients / rest_us * 1e6 if rest_us else None,
        )

    def to_json(self) -> dict[str, float | None]:
        return asdict(self)


def _rest_us(connect_us: float | None, operate_us: float | None, close_us: float | None) -> float | None:
    """The time of an operation that connecting leaves; None where it is unknown or too short."""
    if connect_us is None or operate_us is None or close_us is None:
        return None
    rest_us = operate_us + close_us
    return rest_us if rest_us >= LEAST_REST * (connect_us + rest_us) else None
