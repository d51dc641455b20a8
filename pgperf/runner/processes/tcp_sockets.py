"""The TCP sockets of this network namespace that listen or are connected.

/proc/net/tcp also lists the connections that have ended (TIME_WAIT). A server of short requests has
thousands of them, and to read them takes longer than a request. The kernel's diagnostics leave them
out; where there are none, /proc is read.
"""

import socket
import struct
from dataclasses import dataclass
from pathlib import Path

from pgperf.runner.processes import sock_diag

_ESTABLISHED, _LISTEN = 1, 10  # TCP_ESTABLISHED, TCP_LISTEN
_QUESTION = struct.Struct("=BBBBI48x")  # inet_diag_req_v2: family, protocol, -, -, states, id
_PORTS = struct.Struct("!HH")  # inet_diag_sockid: both ports
_PORTS_AT, _ADDRESS_AT, _PEER_ADDRESS_AT, _INODE_AT = 4, 8, 24, 68  # in inet_diag_msg
_INODE = struct.Struct("=I")
_ADDRESS_BYTES = {socket.AF_INET: 4, socket.AF_INET6: 16}


@dataclass(frozen=True)
class TcpSocket:
    """The addresses of both ends, as bytes in network order, and their ports."""

    listens: bool
    address: bytes
    port: int
    peer_address: bytes
    peer_port: int
    inode: int


def read() -> list[TcpSocket]:
    """Those by both IP versions."""
    try:
        return [found for family in _ADDRESS_BYTES for found in _asked(family)]
    except OSError:
        return of_proc()


def of_proc(proc: str = "/proc") -> list[TcpSocket]:
    """The same, as /proc/net lists them."""
    found = []
    for name in ("tcp", "tcp6"):
        try:
            lines = Path(f"{proc}/net/{name}").read_text().splitlines()[1:]
        except OSError:
            continue
        words = (line.split(None, 10) for line in lines)
        found += [_listed(each) for each in words if len(each) > 9 and _shown(int(each[3], 16))]
    return found


def _asked(family: socket.AddressFamily) -> list[TcpSocket]:
    states = 1 << _ESTABLISHED | 1 << _LISTEN
    question = _QUESTION.pack(family, socket.IPPROTO_TCP, 0, 0, states)
    return [_reported(each, _ADDRESS_BYTES[family]) for each in sock_diag.dump(question)]


def _reported(message: bytes, address_bytes: int) -> TcpSocket:
    port, peer_port = _PORTS.unpack_from(message, _PORTS_AT)
    (inode,) = _INODE.unpack_from(message, _INODE_AT)
    address, peer_address = (message[at : at + address_bytes] for at in (_ADDRESS_AT, _PEER_ADDRESS_AT))
    return TcpSocket(message[1] == _LISTEN, address, port, peer_address, peer_port, inode)


def _listed(words: list[str]) -> TcpSocket:
    return TcpSocket(int(words[3], 16) == _LISTEN, *_end(words[1]), *_end(words[2]), int(words[9]))


def _end(word: str) -> tuple[bytes, int]:
    address, port = word.split(":")
    return _packed(address), int(port, 16)


def _packed(digits: str) -> bytes:
    """From words of 32 bits, whose bytes are in the order of this machine."""
    each = [int(digits[at : at + 8], 16) for at in range(0, len(digits), 8)]
    return struct.pack(f"={len(each)}I", *each)


def _shown(state: int) -> bool:
    return state in (_ESTABLISHED, _LISTEN)
