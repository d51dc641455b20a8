"""Rows of variants as the summary makes them, from a few numbers."""

from typing import Any

from pgperf.analysis.variant_summary import VariantSummary

Row = dict[str, Any]
#: An idle half, and nothing else that is known.
SHARES: Row = {
    "clients": 0.0, "pooler": 0.0, "server": 0.0, "other": 0.0, "unattributed": 0.0, "idle": 0.5, "iowait": 0.0,
    "steal": 0.0,
}  # fmt: skip


def row(
    us: float | None = 211.0,
    *,
    client: float | None = 165.0,
    pooler: float | None = 0.0,
    server: float | None = 21.0,
    queue: dict[str, float | None] | None = None,
    clients: int = 1,
    events: dict[str, float] | None = None,
    layer: str = "django_orm",
    route: str = "socket",
    placement: str = "apart",
    cpus: int | None = 2,
    share: dict[str, float | None] | None = None,
    pool: dict[str, Any] | None = None,
    **more: Any,
) -> Row:
    """`us` per operation of one client, of which roles take so much; `events`: shares of the
    server's samples.
    """
    user, system = (None, None) if client is None else (client * 0.8, client * 0.2)
    return {
        "label": f"{layer} · {route}", "layer": layer, "route": route, "clients": clients, "placement": placement,
        "us_per_op": us, "ops_per_s": clients / us * 1e6 if us else None,
        "cpu_us_per_op": {
            "client_user": user, "client_sys": system, "pooler": pooler, "server": server, "auxiliaries": 0.0,
        },
        "cpu_account": {
            "cpus": cpus, "elapsed_s": 1.0, "role_cpus": _role_cpus(placement, cpus),
            "share": {**SHARES, **(share or {})},
            "wait_us_per_op": {"client": 0.0, "pooler": 0.0, "server": 0.0, **(queue or {})},
        },
        "diagnostics": {
            "samples": 100, "wait_events": {"CPU": 0.2, "Client": 0.8} if events is None else events, "pooler": pool,
        },
        **more,
    }  # fmt: skip


def _role_cpus(placement: str, cpus: int | None) -> dict[str, int | None] | None:
    """As runner.cpu.placement divides the host's CPUs."""
    if cpus is None:
        return None
    shares: dict[str, tuple[int, int | None]] = {
        "apart": (max(1, cpus // 2), max(1, cpus - cpus // 2)), "together": (1, 1), "scheduler": (cpus, None),
    }  # fmt: skip
    clients, server = shares[placement]
    return {"clients": clients, "server": server, "pooler": 1}


def remote(
    us: float | None = 211.0,
    *,
    agent: bool = True,
    pooled_there: bool = False,
    far_cpus: int = 8,
    there: dict[str, float | None] | None = None,
    share: dict[str, float | None] | None = None,
    **more: Any,
) -> Row:
    """The same of a server on another host; `there`: shares of that one. Without an agent it is
    unknown.
    """
    unseen: dict[str, Any] = {} if agent else {"server": None, "queue": {"server": None}}
    here = {"clients": 0.1, "server": None, "auxiliaries": None, "pooler": None if pooled_there else 0.0}
    found = row(us, placement="scheduler", share={**here, **(share or {})}, **{**unseen, **more})
    if agent:
        far = {"server": 0.1, "auxiliaries": 0.0, "pooler": 0.0 if pooled_there else None, "other": None}
        found["cpu_account"]["server_host"] = {
            "cpus": far_cpus, "elapsed_s": 1.0,
            "share": {**far, "unattributed": 0.0, "idle": 0.9, "iowait": 0.0, "steal": 0.0, **(there or {})},
        }  # fmt: skip
    return found


def summary(given_row: Row) -> VariantSummary:
    """The record that the logic reads."""
    return VariantSummary.from_json(given_row)
