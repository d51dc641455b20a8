"""The first pgtune, as of March 2010, for the servers that have checkpoint_segments (before 9.5).

Sizes keep four binary digits. It knows neither CPUs nor storage.
"""

from collections.abc import Iterator

from pgperf.core.translation import gettext_noop as _
from pgperf.tuning.records import USUAL_KB, Advice, Server

_CONNECTIONS = {"web": 200, "oltp": 300, "dw": 20, "mixed": 80, "desktop": 5}
_SEGMENTS = {"web": 8, "oltp": 16, "dw": 64, "mixed": 16, "desktop": 3}
_COMPLETION = {"web": "0.7", "oltp": "0.9", "dw": "0.9", "mixed": "0.9", "desktop": "0.5"}
_WAL_KB_PER_SEGMENT = 512
_MAINTENANCE_MOST_KB = 1 << 20
#: The server refuses less.
_WORK_LEAST_KB = 64


def advise(server: Server) -> Iterator[Advice]:
    """The settings, those of one purpose together."""
    connections = server.connections or _CONNECTIONS[server.profile]
    segments = _SEGMENTS[server.profile]
    yield Advice("max_connections", str(connections), _("a usual number for this use"))
    if server.memory_kb >= USUAL_KB[0]:
        yield from _memory(server, connections)
    yield Advice("checkpoint_segments", str(segments), _("longer between two checkpoints"))
    yield Advice(
        "checkpoint_completion_target", _COMPLETION[server.profile], _("spreads a checkpoint's writes")
    )
    yield _rounded("wal_buffers", _WAL_KB_PER_SEGMENT * segments, _("512 kB for each checkpoint segment"))


def _memory(server: Server, connections: int) -> Iterator[Advice]:
    memory, profile = server.memory_kb, server.profile
    desktop = profile == "desktop"
    yield _rounded("shared_buffers", memory // (16 if desktop else 4), _("a share of the memory"))
    cache = memory // 4 if desktop else memory * 3 // 4
    yield _rounded("effective_cache_size", cache, _("what the operating system may cache"))
    parts = {"dw": 2, "mixed": 2, "desktop": 6}.get(profile, 1)
    work = max(_WORK_LEAST_KB, memory // connections // parts)
    yield _rounded("work_mem", work, _("the memory, shared by all connections"))
    upkeep = min(memory // (8 if profile == "dw" else 16), _MAINTENANCE_MOST_KB)
    yield _rounded("maintenance_work_mem", upkeep, _("a share of the memory, 1 GB at most"))


def _rounded(name: str, kb: int, why: str) -> Advice:
    """Only the four leading binary digits stay, so that SHOW prints a large unit."""
    halvings = 0
    while kb > 16:
        kb //= 2
        halvings += 1
    return Advice.size(name, kb << halvings, why)
