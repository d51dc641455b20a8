"""Simulates two hosts on one machine: Linux namespaces with their own network and process ids.

A virtual Ethernet pair joins them. A host is the first process of its namespaces: when that process
is killed, the kernel ends everything in it and removes the pair. The process dies with the test
process, so nothing is left to clean up.
"""

import os
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

import psutil

PROGRAMS = ("unshare", "nsenter", "ip", "setpriv")
_TIMEOUT_S = 300
_INIT = ["sh", "-c", "echo ready; exec sleep infinity"]


def refusal() -> str:
    """Why this machine cannot make hosts; "" if it can."""
    if os.geteuid() != 0:
        return "making network namespaces takes root"
    lacking = [name for name in PROGRAMS if not shutil.which(name)]
    if lacking:
        return f"{', '.join(lacking)} is not installed"
    tried = subprocess.run(
        ["unshare", "--net", "--pid", "--mount-proc", "--fork", "true"], check=False, capture_output=True
    )
    return "" if tried.returncode == 0 else f"unshare: {tried.stderr.decode().strip()}"


class Host:
    """A simulated host for as long as the context lasts.

    Run commands in it with `inside` or `run`. `ahead_s`: by how much its monotonic clock is ahead of
    this machine's.
    """

    def __init__(self, ahead_s: int | None = None) -> None:
        self.ahead_s = ahead_s

    def __enter__(self) -> Self:
        spaces = ["unshare", "--net", "--pid", "--mount-proc", "--fork", "--kill-child=SIGKILL"]
        spaces += [] if self.ahead_s is None else ["--time", f"--monotonic={self.ahead_s}"]
        self._outer = subprocess.Popen(
            ["setpriv", "--pdeathsig=KILL", *spaces, *_INIT],
            stdout=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        assert self._outer.stdout
        assert self._outer.stdout.readline() == b"ready\n"
        (self.init,) = (child.pid for child in psutil.Process(self._outer.pid).children())
        self.run("ip", "link", "set", "lo", "up")
        return self

    def __exit__(self, *error: object) -> None:
        pidfd = os.pidfd_open(self.init)
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
        self._outer.communicate()
        os.close(pidfd)

    def inside(self, *argv: str, cwd: Path = Path("/"), as_user: Sequence[str] = ()) -> list[str]:
        """The command line that runs `argv` in this host. `as_user`: options of setpriv."""
        spaces = ["--net", "--pid", "--mount", *([] if self.ahead_s is None else ["--time"])]
        enter = ["nsenter", f"--target={self.init}", *spaces, "env", f"--chdir={cwd}"]
        return [*enter, *(["setpriv", *as_user] if as_user else []), *argv]

    def run(self, *argv: str, cwd: Path = Path("/"), env: Mapping[str, str] | None = None) -> str:
        """Run the command and return its output.

        Raises CalledProcessError; its errors go to our stderr.
        """
        done = subprocess.run(
            self.inside(*argv, cwd=cwd),
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            env=env,
            timeout=_TIMEOUT_S,
        )
        return done.stdout


def join(one: Host, other: Host, network: str) -> tuple[str, str]:
    """Join both hosts with a virtual Ethernet pair; their addresses, NETWORK.1 and NETWORK.2."""
    cable = ["ip", "link", "add", "cable", "netns", str(one.init), "type", "veth", "peer", "name", "cable"]
    subprocess.run([*cable, "netns", str(other.init)], check=True)
    addresses = (f"{network}.1", f"{network}.2")
    for host, address in zip((one, other), addresses, strict=True):
        host.run("ip", "address", "add", f"{address}/30", "dev", "cable")
        host.run("ip", "link", "set", "cable", "up")
    return addresses


def star(hub: Host, hosts: Sequence[Host], network: str) -> str:
    """Join every host with the hub by a pair of its own; the hub's address, by which all reach it."""
    address = f"{network}.254"
    hub.run("ip", "address", "add", f"{address}/32", "dev", "lo")
    for at, host in enumerate(hosts):
        ends = (f"{network}.{4 * at + 1}", f"{network}.{4 * at + 2}")
        pair = [
            "ip",
            "link",
            "add",
            cable(at),
            "netns",
            str(hub.init),
            "type",
            "veth",
            "peer",
            "name",
            "cable",
        ]
        subprocess.run([*pair, "netns", str(host.init)], check=True)
        for end, name, own in zip((hub, host), (cable(at), "cable"), ends, strict=True):
            end.run("ip", "address", "add", f"{own}/30", "dev", name)
            end.run("ip", "link", "set", name, "up")
        host.run("ip", "route", "add", f"{address}/32", "via", ends[0])
    return address


def cable(at: int) -> str:
    """The hub's end of a host's pair."""
    return f"cable{at}"
