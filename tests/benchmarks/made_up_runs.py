"""Made-up runs as `pgperf run --json` prints them, as far as the scripts of published results read
them.
"""

from typing import Any

Run = dict[str, Any]
#: Half the width of an interval, as a factor.
NARROW, WIDE = 1.01, 3.0


def row(
    us: float | None,
    width: float | None = NARROW,
    word: str | None = "latency",
    disturbed: float | None = 0.0,
    **fields: Any,
) -> dict[str, Any]:
    """A variant with this time per operation of each of its connections. `disturbed` is the share of
    its disturbances.
    """
    known = us is not None and width is not None
    connections = fields.get("clients", 1) * fields.get("workers", 1)
    made = {
        "layer": "libpq", "mode": "simple", "route": "socket", "clients": 1, "connect": "persistent",
        "control": 0, "workload": "work", "us_per_op": us, "verdict": {"word": word, "grade": {"share": disturbed}},
        "connection_throughput": None,
        "us_per_op_low": us / width if known else None, "us_per_op_high": us * width if known else None,
        "ops_per_s": connections * 1e6 / us if us else None, "rows_per_s": 10 * connections * 1e6 / us if us else None,
        **fields,
    }  # fmt: skip
    names = ("layer", "route", "workload", "mode", "connect", "control")
    return {"label": " · ".join(str(made[name]) for name in names), **made}


def comparison(one: dict[str, Any], other: dict[str, Any], width: float | None = NARROW) -> dict[str, Any]:
    ratio = one["us_per_op"] / other["us_per_op"]
    ends = {"low": ratio / width, "high": ratio * width} if width else {"low": None, "high": None}
    return {"variant": one["label"], "baseline": other["label"], "ratio": ratio, **ends}


def run(*rows: dict[str, Any], comparisons: list[dict[str, Any]] | None = None) -> Run:
    return {"variants": list(rows), "comparisons": comparisons or []}


def pooling_run(
    direct: float, pooled: float, kept_direct: float, kept_pooled: float, *, width: float | None = NARROW,
    routes: tuple[str, str] = ("tcp_trust", "pgbouncer_trust"), **changes: Any,
) -> Run:  # fmt: skip
    """Of `connection-cost`: these transactions per second of each layer, connecting and not."""
    rates = {"per_operation": (direct, pooled), "persistent": (kept_direct, kept_pooled)}
    rows, compared = [], []
    for layer in ("libpq", "pgbench", "pgbench_one_thread"):
        for connect, pair in rates.items():
            fields = {"layer": layer, "connect": connect, "clients": 20, **changes}
            own = [row(20e6 / tps, route=route, **fields) for tps, route in zip(pair, routes, strict=True)]
            rows += own
            compared.append(comparison(own[1], own[0], width))
    return run(*rows, comparisons=compared)


def suite_run(
    times_us: dict[str, dict[str, float]], *, width: float | None = NARROW, workers: int = 10, **changes: Any
) -> Run:
    """Of a driver suite, by driver and query, with psycopg in mode prepared. It has no comparisons."""
    rows = [
        row(
            us, width, layer=driver, workload=query, workers=workers,
            mode="simple" if driver == "psycopg2" else "prepared", **changes,
        )
        for driver, queries in times_us.items()
        for query, us in queries.items()
    ]  # fmt: skip
    return run(*rows)
