"""The one connection of a pool, which has to be the same in each operation of a client.

A pool replaces a connection that is lost or too old, and says nothing: an operation would contain a
connect that no figure shows.
"""

import math
from typing import Any

from pgperf.core.exceptions import ConnectionReplaced

#: psycopg_pool's argument, s: no connection is too old. By default it is after an hour.
MAX_LIFETIME_S = math.inf


def checked(kept: Any, given: Any) -> Any:
    """The connection that the pool has given, which is the first one or the one that was kept.

    Raises ConnectionReplaced if it is another one.
    """
    if kept is None or kept is given:
        return given
    raise ConnectionReplaced(_REPLACED)


_REPLACED = (
    "the pool replaced its connection, because the server, a pooler or the network had ended the first one. An"
    " operation would include a connect that no figure shows. Find what ends idle connections (idle_session_timeout,"
    " a pooler's or a firewall's limit, an administrator), or choose connection mode persistent"
)
