"""The kernel's socket diagnostics (sock_diag(7)) about this network namespace."""

import os
import socket
import struct
from collections.abc import Iterator

_NETLINK_SOCK_DIAG = 4
_SOCK_DIAG_BY_FAMILY = 20
_REQUEST_DUMP = 0x301  # NLM_F_REQUEST | NLM_F_DUMP
_ERROR = 2  # NLMSG_ERROR
_HEADER = struct.Struct("=IHHII")  # nlmsghdr: length, type, flags, sequence, port
_ERRNO = struct.Struct("=i")
_MOST_BYTES = 1 << 16


def dump(question: bytes) -> list[bytes]:
    """The bodies of all answers to a question in the form of a family.

    Raises OSError where the kernel has no diagnostics for that family.
    """
    header = _HEADER.pack(_HEADER.size + len(question), _SOCK_DIAG_BY_FAMILY, _REQUEST_DUMP, 1, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG) as kernel:
        kernel.send(header + question)
        return list(_messages(kernel))


def aligned(length: int) -> int:
    """Netlink pads to four bytes."""
    return (length + 3) & ~3


def _messages(kernel: socket.socket) -> Iterator[bytes]:
    """The bodies of the answers, until the kernel's last message."""
    while True:
        data = kernel.recv(_MOST_BYTES)
        while data:
            length, kind, *_ = _HEADER.unpack_from(data)
            if kind == _ERROR:
                (negated,) = _ERRNO.unpack_from(data, _HEADER.size)
                raise OSError(-negated, os.strerror(-negated))
            if kind != _SOCK_DIAG_BY_FAMILY:
                return
            yield data[_HEADER.size : length]
            data = data[aligned(length) :]
