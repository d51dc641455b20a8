"""Unix socket connections between processes of this machine.

/proc lists the sockets of a process; the kernel's socket diagnostics (sock_diag(7), unix_diag(7))
report which two sockets are connected. Sockets that are not visible are left out.
"""

import os
import socket
import struct
import sys
from collections.abc import Collection, Iterator

_NETLINK_SOCK_DIAG = 4
_SOCK_DIAG_BY_FAMILY = 20
_REQUEST_DUMP = 0x301  # NLM_F_REQUEST | NLM_F_DUMP
_ALL_STATES = 0xFFFFFFFF
_SHOW_PEER = 4  # UDIAG_SHOW_PEER
_PEER = 2  # UNIX_DIAG_PEER
_HEADER = struct.Struct("=IHHII")  # nlmsghdr: length, type, flags, sequence, port
_QUESTION = struct.Struct("=BBHIIIII")  # unix_diag_req: family, -, -, states, inode, show, cookie
_ANSWER = struct.Struct("=BBBBIII")  # unix_diag_msg: family, type, state, -, inode, cookie
_ATTRIBUTE = struct.Struct("=HH")  # rtattr: length, type
_MOST_BYTES = 1 << 16


def connected(pid: int, others: Collection[int], proc: str = "/proc") -> list[int]:
    """Those of the `others` that are connected to `pid` over a Unix socket."""
    own = held(pid, proc)
    peers = {peer for inode, peer in unix_peers() if inode in own}
    return [other for other in others if not peers.isdisjoint(held(other, proc))] if peers else []


def held(pid: int, proc: str = "/proc") -> set[int]:
    """The inodes of a process's sockets; none if they are not visible."""
    folder = f"{proc}/{pid}/fd"
    found = set()
    try:
        for name in os.listdir(folder):
            kind, _, inode = os.readlink(f"{folder}/{name}").partition(":[")
            if kind == "socket":
                found.add(int(inode.rstrip("]")))
    except (OSError, ValueError):
        pass
    return found


def unix_peers() -> list[tuple[int, int]]:
    """The inodes of all connected pairs of Unix sockets in this network namespace."""
    question = _QUESTION.pack(socket.AF_UNIX, 0, 0, _ALL_STATES, 0, _SHOW_PEER, 0, 0)
    header = _HEADER.pack(_HEADER.size + len(question), _SOCK_DIAG_BY_FAMILY, _REQUEST_DUMP, 1, 0)
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG) as kernel:
            kernel.send(header + question)
            return [pair for message in _messages(kernel) if (pair := _pair(message))]
    except OSError:
        return []


def _messages(kernel: socket.socket) -> Iterator[bytes]:
    """The bodies of the answers, until the kernel's last message or an error."""
    while True:
        data = kernel.recv(_MOST_BYTES)
        while data:
            length, kind, *_ = _HEADER.unpack_from(data)
            if kind != _SOCK_DIAG_BY_FAMILY:
                return
            yield data[_HEADER.size : length]
            data = data[_aligned(length) :]


def _pair(message: bytes) -> tuple[int, int] | None:
    inode = _ANSWER.unpack_from(message)[4]
    rest = message[_ANSWER.size :]
    while len(rest) > _ATTRIBUTE.size:
        length, kind = _ATTRIBUTE.unpack_from(rest)
        if kind == _PEER:
            return inode, int.from_bytes(rest[_ATTRIBUTE.size : length], sys.byteorder)
        rest = rest[_aligned(length) :]
    return None


def _aligned(length: int) -> int:
    """Netlink pads to four bytes."""
    return (length + 3) & ~3
