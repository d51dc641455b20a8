"""A load host with a network of its own, which can be cut as a whole: a network namespace.

A virtual cable joins it with this machine. The site's PostgreSQL and Redis listen at this machine's
end too. The host finds nothing else, so a cut takes its way to the site's database, to the broker
and to the measured server at once. Needs root.
"""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from example.stack.network_hosts import Host
from soak.site import Site

_CABLE = "cable"


@contextmanager
def joined(site: Site) -> Iterator[tuple[Host, str]]:
    """The host, and the address by which it reaches this machine.

    The kernel removes the cable with the host.
    """
    network = f"10.213.{20 + os.getpid() % 200}"
    address = f"{network}.1"
    with Host() as host:
        own_end = f"pgperf-{os.getpid()}"
        subprocess.run(
            ["ip", "link", "add", own_end, "type", "veth", "peer", "name", _CABLE, "netns", str(host.init)],
            check=True,
        )
        subprocess.run(["ip", "address", "add", f"{address}/30", "dev", own_end], check=True)
        subprocess.run(["ip", "link", "set", own_end, "up"], check=True)
        host.run("ip", "address", "add", f"{network}.2/30", "dev", _CABLE)
        host.run("ip", "link", "set", _CABLE, "up")
        site.listen(address, f"{network}.0/30")
        yield host, address


@contextmanager
def cut(host: Host) -> Iterator[None]:
    """No packet leaves or reaches the host meanwhile, and nobody is told."""
    host.run("ip", "link", "set", _CABLE, "down")
    try:
        yield
    finally:
        host.run("ip", "link", "set", _CABLE, "up")
