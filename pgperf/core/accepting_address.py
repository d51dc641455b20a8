"""Of the addresses of a name, the one to use: a server may listen on localhost's address of one IP
version only.
"""

import socket
from collections.abc import Sequence
from typing import Any

#: A family, and an address of it as `socket.getaddrinfo` gives it.
Address = tuple[int, Any]
#: How long a server may take to accept a connection.
_ACCEPTS_S = 1.0


def accepting(addresses: Sequence[Address]) -> Address:
    """Of several addresses the first that accepts a connection; the first of all, if none does. A
    single one is not tried.
    """
    several = addresses if len(addresses) > 1 else ()
    return next((each for each in several if _accepts(*each)), addresses[0])


def _accepts(family: int, address: Any) -> bool:
    try:
        with socket.socket(family, socket.SOCK_STREAM) as end:
            end.settimeout(_ACCEPTS_S)
            end.connect(address)
    except OSError:
        return False
    return True
