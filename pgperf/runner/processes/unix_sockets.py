"""Unix socket connections between processes of this machine.

/proc lists the sockets of a process; the kernel's socket diagnostics (sock_diag(7), unix_diag(7))
report which two sockets are connected, and to which address. Sockets that are not visible are left
out.
"""

import os
import socket
import struct
from collections.abc import Collection, Set
from contextlib import suppress
from dataclasses import dataclass

from pgperf.runner.processes import sock_diag

_ALL_STATES = 0xFFFFFFFF
_SHOW = 1 | 2 | 4 | 8  # UDIAG_SHOW_: NAME, VFS, PEER, ICONS
_NAME, _FILE, _PEER, _WAITING = range(4)  # UNIX_DIAG_: NAME, VFS, PEER, ICONS
_LISTEN = 10  # TCP_LISTEN
_QUESTION = struct.Struct("=BBHIIIII")  # unix_diag_req: family, -, -, states, inode, show, cookie
_ANSWER = struct.Struct("=BBBBIII")  # unix_diag_msg: family, type, state, -, inode, cookie
_ATTRIBUTE = struct.Struct("=HH")  # rtattr: length, type
#: The descriptors of a process's input, output and errors.
_STREAMS = range(3)


def connected(pid: int, others: Collection[int], proc: str = "/proc") -> list[int]:
    """Those of the `others` that are connected to `pid` over a Unix socket."""
    own = held(pid, proc)
    peers = {peer for inode, peer in unix_peers() if inode in own}
    return [other for other in others if not peers.isdisjoint(held(other, proc))] if peers else []


def held(pid: int, proc: str = "/proc", streams: bool = True) -> set[int]:
    """The inodes of a process's sockets; none if they are not visible. `streams`: also those of its
    input, output and errors.
    """
    folder = f"{proc}/{pid}/fd"
    found: set[int] = set()
    try:
        names = os.listdir(folder)
    except OSError:
        names = []
    for name in names:
        with suppress(OSError, ValueError):  # one that was closed meanwhile
            kind, _, inode = os.readlink(f"{folder}/{name}").partition(":[")
            if kind == "socket" and (streams or int(name) not in _STREAMS):
                found.add(int(inode.rstrip("]")))
    return found


@dataclass(frozen=True)
class UnixSocket:
    """`address`: where it listens, or where the one listens that it was accepted by. `peers`: the
    inodes of the sockets that are connected to it, or wait for that.
    """

    inode: int
    listens: bool
    address: tuple[bytes, bytes]
    peers: frozenset[int]


def unix_peers() -> list[tuple[int, int]]:
    """The inodes of all connected pairs of Unix sockets in this network namespace."""
    return [(each.inode, peer) for each in _unix_sockets() if not each.listens for peer in each.peers]


def servers_of(own: Set[int]) -> set[int]:
    """The listening sockets to which these have connected. A server may hold its end of a connection
    for some milliseconds only, but it always listens.
    """
    found = _unix_sockets()
    reached = {each.address for each in found if each.peers & own}
    return {each.inode for each in found if each.listens and each.address in reached}


def _unix_sockets() -> list[UnixSocket]:
    """All of this network namespace."""
    question = _QUESTION.pack(socket.AF_UNIX, 0, 0, _ALL_STATES, 0, _SHOW, 0, 0)
    try:
        return [_unix_socket(message) for message in sock_diag.dump(question)]
    except OSError:
        return []


def _unix_socket(message: bytes) -> UnixSocket:
    state, _, inode = _ANSWER.unpack_from(message)[2:5]
    found = _attributes(message[_ANSWER.size :])
    peers = memoryview(found.get(_PEER, b"") + found.get(_WAITING, b"")).cast("I")
    address = found.get(_NAME, b""), found.get(_FILE, b"")
    return UnixSocket(inode, state == _LISTEN, address, frozenset(peers) - {0})


def _attributes(rest: bytes) -> dict[int, bytes]:
    found: dict[int, bytes] = {}
    while len(rest) > _ATTRIBUTE.size:
        length, kind = _ATTRIBUTE.unpack_from(rest)
        found[kind] = rest[_ATTRIBUTE.size : length]
        rest = rest[sock_diag.aligned(length) :]
    return found
