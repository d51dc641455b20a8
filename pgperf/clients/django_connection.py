"""How long Django keeps a connection, for each connection mode of a spec."""

from typing import Any

from pgperf.clients.kept_connection import MAX_LIFETIME_S
from pgperf.core import protocol

#: Connection modes in which each operation is one request, whose end closes the connection or puts
#: it back.
OF_REQUESTS = ("request", "pool")


def lifetime(spec: protocol.Spec) -> dict[str, Any]:
    """The settings of a `DATABASES` alias beside OPTIONS."""
    return {
        "CONN_MAX_AGE": 0 if spec.connection_mode in OF_REQUESTS else None,
        "CONN_HEALTH_CHECKS": False,
    }


def pool(spec: protocol.Spec) -> dict[str, Any]:
    """OPTIONS: a pool of one connection where the connection mode is pool, else none."""
    if spec.connection_mode != "pool":
        return {}
    timeout_s = float(spec.connect_timeout_s)
    return {"pool": {"min_size": 1, "max_size": 1, "timeout": timeout_s, "max_lifetime": MAX_LIFETIME_S}}
