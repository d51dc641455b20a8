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
    - time of all connects / N), which is X / (1 - X C / N) for a throughput X and a mean connect
    time C. None where less than a twentieth of the wall time is left.
    """

    including: float | None
    excluding: float | None
    excluding_pgbench: float | None

    @classmethod
    def of(cls, variant: VariantSummary) -> Self | None:
        """None for a variant that keeps its connections."""
        if not variant.phases_us:
            return None
        means = {name: figures.get("mean") for name, figures in variant.phases_us.items()}
        clients = variant.clients * variant.workers
        operate_us = means.get("operate")
        return cls(
            including=variant.ops_per_s,
            excluding=clients / operate_us * 1e6 if operate_us else None,
            excluding_pgbench=_by_pgbench(variant.ops_per_s, means.get("connect"), clients),
        )

    def to_json(self) -> dict[str, float | None]:
        return asdict(self)


def _by_pgbench(ops_per_s: float | None, connect_us: float | None, clients: int) -> float | None:
    if ops_per_s is None or connect_us is None:
        return None
    rest = 1 - ops_per_s * connect_us / 1e6 / clients
    return ops_per_s / rest if rest >= LEAST_REST else None
