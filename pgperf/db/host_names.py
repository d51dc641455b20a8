"""Host names in ASCII, and addresses written in full."""

import re
from ipaddress import ip_address

_LABEL = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?")
#: Names that the resolver reads as an address: 2130706433, 127.1, 0x7f000001.
_NUMBER = re.compile(r"\d+|0[xX][0-9A-Fa-f]*")
_HOST_BYTES = 253


def is_address(value: str) -> bool:
    try:
        return "%" not in value and bool(ip_address(value))
    except ValueError:
        return False


def is_host_name(value: str) -> bool:
    labels = value.removesuffix(".").split(".")
    return (
        len(value) <= _HOST_BYTES
        and all(_LABEL.fullmatch(label) for label in labels)
        and not _NUMBER.fullmatch(labels[-1])
    )
