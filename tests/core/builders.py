"""Records with plain defaults; a test names only the fields that it is about."""

from typing import Any

from pgperf.core.records import SliceRecord, Variant


def variant(**fields: Any) -> Variant:
    """One psycopg client on a socket, unless `fields` say otherwise."""
    defaults = {
        "workload": "site-by-domain", "layer": "psycopg", "mode": "simple", "route": "socket", "clients": 1,
        "connect": "persistent", "placement": "apart",
    }  # fmt: skip
    return Variant(**{**defaults, **fields})


def slice_record(**fields: Any) -> SliceRecord:
    """100 operations of one row in 50 ms, unless `fields` say otherwise."""
    defaults = {
        "round": 0, "position": 0, "ops": 100, "rows": 100, "lead_in_ops": 10, "window_ns": 50_000_000,
        "us_per_op": 500.0, "ops_per_s": 2_000.0, "user_ns": 5, "sys_ns": 6,
    }  # fmt: skip
    return SliceRecord(**{**defaults, **fields})
