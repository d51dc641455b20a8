"""pgtune as of July 2026, for PostgreSQL on Linux. Sizes are in kB and rounded down."""

from collections.abc import Iterator
from math import ceil

from pgperf.core.translation import gettext_noop as _
from pgperf.tuning.records import Advice, Server

_MB, _GB = 1 << 10, 1 << 20
_CONNECTIONS = {"web": 200, "oltp": 300, "dw": 40, "mixed": 100, "desktop": 20}
#: min_wal_size and max_wal_size, MB.
_WAL_MB = {
    "web": (1024, 4096),
    "oltp": (2048, 8192),
    "dw": (4096, 16384),
    "mixed": (1024, 4096),
    "desktop": (100, 2048),
}
_IO_CONCURRENCY = {"hdd": 2, "ssd": 200, "san": 300, "nvme": 1000}
#: Of work_mem, by the size of the database beside the memory.
_DATA_FACTORS = {"fits": (13, 10), "similar": (1, 1), "larger": (9, 10)}
_WORK_MEM_LEAST, _MAINTENANCE_MOST, _AUTOVACUUM_MOST = 4 * _MB, 8 * _GB, 2 * _GB
_WAL_BUFFERS_LEAST, _WAL_BUFFERS_NEAR_MOST, _WAL_BUFFERS_MOST = 32, 14 * _MB, 16 * _MB
_HUGE_FROM = 2 * _GB
#: The server's default of max_worker_processes.
_WORKERS = 8
_PARALLEL_FROM_CPUS = 4


def advise(server: Server) -> Iterator[Advice]:
    """The settings, those of one purpose together."""
    connections = server.connections or _CONNECTIONS[server.profile]
    yield Advice("max_connections", str(connections), _("a usual number for this use, or the one asked for"))
    yield from _memory(server)
    yield from _write_ahead_log(server)
    yield from _planner(server)
    yield _work_mem(server, connections)
    yield from _parallel(server)
    yield from _autovacuum(server)
    yield from _input_output(server)


def _memory(server: Server) -> Iterator[Advice]:
    buffers = _shared_buffers(server)
    desktop = server.profile == "desktop"
    yield Advice.size(
        "shared_buffers",
        buffers,
        _("1/16 of the memory: other programs need the rest") if desktop else _("1/4 of the memory"),
    )
    cache = server.memory_kb // 4 if desktop else server.memory_kb * 3 // 4
    yield Advice.size("effective_cache_size", cache, _("what server and operating system may cache"))
    yield Advice.size(
        "maintenance_work_mem",
        _maintenance(server),
        _("for VACUUM and CREATE INDEX, one at a time; 8 GB at most"),
    )
    huge = "try" if buffers >= _HUGE_FROM else "off"
    yield Advice("huge_pages", huge, _("huge pages pay from 2 GB of shared_buffers"))


def _write_ahead_log(server: Server) -> Iterator[Advice]:
    least, most = _WAL_MB[server.profile]
    yield Advice("checkpoint_completion_target", "0.9", _("spreads a checkpoint's writes"))
    yield Advice.size("wal_buffers", _wal_buffers(server), _("3 % of shared_buffers, 16 MB at most"))
    yield Advice.size("min_wal_size", least * _MB, _("keeps WAL files for reuse"))
    yield Advice.size("max_wal_size", most * _MB, _("fewer checkpoints; takes this much disk space"))
    if server.version >= 15:
        yield Advice("wal_compression", "lz4", _("less WAL for little CPU time; the server needs lz4"))
    elif server.version >= 10:
        yield Advice("wal_compression", "on", _("less WAL for some CPU time"))
    if server.profile == "desktop":
        why = _("less WAL; without replication, base backups and archiving only")
        yield Advice(
            "wal_level",
            "minimal",
            why,
            risk="the server does not start while it has a replication slot or max_wal_senders is above 0",
        )
        yield Advice("max_wal_senders", "0", _("wal_level = minimal demands it"))


def _planner(server: Server) -> Iterator[Advice]:
    yield (
        Advice("default_statistics_target", "500", _("large analytical queries need more statistics"))
        if server.profile == "dw"
        else Advice("default_statistics_target", "100", _("enough for short queries"))
    )
    yield _random_page_cost(server)
    if server.version >= 12 and server.profile in ("web", "oltp", "mixed"):
        yield Advice("jit", "off", _("compiling costs short queries more than it saves"))


def _random_page_cost(server: Server) -> Advice:
    name = "random_page_cost"
    if server.data_size == "fits":
        return Advice(name, "1.1", _("the database fits in memory"))
    if server.storage == "hdd":
        return Advice(name, "4", _("a disk has to seek"))
    if server.profile == "dw":
        return Advice(name, "4", _("keeps large queries from index scans"))
    return Advice(name, "1.1", _("this storage reads at random nearly as fast as in sequence"))


def _work_mem(server: Server, connections: int) -> Advice:
    """Each connection and each worker may use it about three times at once."""
    workers = server.cpus if _is_parallel(server) and server.cpus else _WORKERS
    uses = (connections + workers) * 3 * {"dw": 2, "mixed": 2, "desktop": 6}.get(server.profile, 1)
    times, parts = _DATA_FACTORS[server.data_size]
    size = (server.memory_kb - _shared_buffers(server)) // uses * times // parts
    why = _("the memory beside shared_buffers, shared by all connections and workers; 4 MB at least")
    return Advice.size("work_mem", max(size, _WORK_MEM_LEAST), why)


def _parallel(server: Server) -> Iterator[Advice]:
    cpus = server.cpus
    if cpus is None or not _is_parallel(server):
        return
    half = ceil(cpus / 2)
    gather = half if server.profile == "dw" else min(half, 4)
    yield Advice("max_worker_processes", str(cpus), _("one for each CPU"))
    if server.version >= 9.6:
        why = _("half of the CPUs, 4 at most except for dw")
        yield Advice("max_parallel_workers_per_gather", str(gather), why)
    if server.version >= 10:
        yield Advice("max_parallel_workers", str(cpus), _("one for each CPU"))
    if server.version >= 11:
        yield Advice("max_parallel_maintenance_workers", str(min(half, 4)), _("half of the CPUs, 4 at most"))


def _autovacuum(server: Server) -> Iterator[Advice]:
    cpus = server.cpus or 0
    if cpus >= 16:
        yield Advice("autovacuum_max_workers", "5" if cpus >= 32 else "4", _("enough CPUs for more workers"))
    if _maintenance(server) >= _AUTOVACUUM_MOST:
        yield Advice.size(
            "autovacuum_work_mem", _AUTOVACUUM_MOST, _("several workers at once must not take more")
        )


def _input_output(server: Server) -> Iterator[Advice]:
    concurrent = str(_IO_CONCURRENCY[server.storage])
    yield Advice("effective_io_concurrency", concurrent, _("what this storage can read at the same time"))
    if server.version < 18:
        return
    workers = min(32, max(3, (server.cpus or 0) // 4))
    if workers > 3:
        yield Advice("io_workers", str(workers), _("a quarter of the CPUs"))
    yield Advice(
        "io_method",
        "io_uring",
        _("the fastest on Linux; the server needs liburing, the kernel must allow it"),
        risk="the server does not start where the kernel forbids io_uring",
    )


def _is_parallel(server: Server) -> bool:
    return bool(server.cpus and server.cpus >= _PARALLEL_FROM_CPUS)


def _shared_buffers(server: Server) -> int:
    return server.memory_kb // (16 if server.profile == "desktop" else 4)


def _maintenance(server: Server) -> int:
    return min(server.memory_kb // (8 if server.profile == "dw" else 16), _MAINTENANCE_MOST)


def _wal_buffers(server: Server) -> int:
    size = 3 * _shared_buffers(server) // 100
    if size > _WAL_BUFFERS_NEAR_MOST:
        return _WAL_BUFFERS_MOST
    return max(size, _WAL_BUFFERS_LEAST)
