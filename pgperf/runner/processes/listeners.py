"""Who listens on the TCP ports of this machine."""

import psutil


def by_port() -> dict[int, set[int | None]]:
    """Port -> the processes that listen on it, None for those that are not visible; empty if no
    connection is.
    """
    try:
        connections = psutil.net_connections(kind="tcp")
    except psutil.AccessDenied:
        return {}
    found: dict[int, set[int | None]] = {}
    for each in connections:
        if each.status == psutil.CONN_LISTEN:
            found.setdefault(each.laddr.port, set()).add(each.pid)
    return found
