"""A reply to a slice."""

from pgperf.core import protocol


def reply(first_ns: int, count: int, capped: bool = False) -> protocol.SliceReply:
    return protocol.SliceReply(
        seq=1,
        ops=count,
        rows=count,
        lead_in_ops=10,
        first_ns=first_ns,
        user_ns=0,
        sys_ns=0,
        capped=capped,
        nbytes=8 * count,
    )
