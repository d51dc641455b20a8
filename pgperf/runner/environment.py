"""The environment of a run: the facts that its figures depend on, without secrets."""

import os
import platform
import subprocess
from collections.abc import Callable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import psutil

import pgperf
from pgperf.core.answers import TEXT, TRUTH, ControlQuery
from pgperf.core.client_environment import DEFAULT
from pgperf.core.exceptions import UnexpectedAnswer
from pgperf.core.layers import distributions
from pgperf.core.records import (
    ANSWER,
    CONNECTIONS,
    ENVIRONMENTS,
    REPLICATES,
    SETTING_SOURCES,
    VariantBlock,
    answer_of,
)
from pgperf.install.environments import UsableEnvironment
from pgperf.runner.authentication import LoginConditions
from pgperf.runner.cpu import stolen_time
from pgperf.runner.cpu.host import Host
from pgperf.runner.cpu.idle import IdleState
from pgperf.runner.cpu.placement import CpuPlacement

_PACKAGES = ("Django", "celery", "redis", "numpy")
_SETTINGS = (
    "server_version", "shared_buffers", "work_mem", "effective_cache_size", "max_connections", "fsync",
    "synchronous_commit", "jit", "wal_level", "max_parallel_workers_per_gather", "shared_preload_libraries",
    "track_io_timing", "log_min_duration_statement", "log_statement", "ssl", "TimeZone", "plan_cache_mode",
    "huge_pages", "io_method", "password_encryption", "client_connection_check_interval",
    "pg_stat_statements.track", "compute_query_id",
)  # fmt: skip

#: Those that pgperf.tuning advises on.
_ADVISED = (
    "maintenance_work_mem", "checkpoint_completion_target", "wal_buffers", "default_statistics_target",
    "random_page_cost", "effective_io_concurrency", "min_wal_size", "max_wal_size", "max_worker_processes",
    "max_parallel_workers", "max_parallel_maintenance_workers", "max_wal_senders", "wal_compression",
    "autovacuum_max_workers", "autovacuum_work_mem", "io_workers",
)  # fmt: skip

_NAMES = ", ".join(f"'{name}'" for name in (*_SETTINGS, *_ADVISED))
#: Names in pg_settings keep their own case; current_setting() adds the unit, as SHOW does. Further
#: settings are those that differ from PostgreSQL's defaults. Text is left out, because it may hold
#: a password, and so is what pgperf's own session sets.
_SERVER = ControlQuery(
    "its settings",
    f"SELECT name, current_setting(name) FROM pg_settings WHERE name IN ({_NAMES})"
    " OR (vartype <> 'string' AND setting <> boot_val AND name <> 'port'"
    " AND source NOT IN ('default', 'override', 'client', 'session')) ORDER BY 1",
    (TEXT, TEXT.or_null),
)

#: Where a setting may come from that goes before what the server's configuration files say.
_SOURCES = ControlQuery(
    "where its settings come from",
    "SELECT name, source FROM pg_settings WHERE source IN"
    " ('command line', 'global', 'database', 'user', 'database user') ORDER BY 1",
    (TEXT, TEXT),
)

#: A login may be kept from it, and other servers than PostgreSQL may lack it. A control connection
#: does not survive a query that fails.
_SEES_REPLICATION = ControlQuery(
    "whether its replication is visible",
    "SELECT (SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
    " WHERE nspname = 'pg_catalog' AND relname IN ('pg_stat_replication', 'pg_replication_slots')"
    " AND has_table_privilege(c.oid, 'SELECT'))"
    " + (SELECT count(*) FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace"
    " WHERE nspname = 'pg_catalog' AND proname IN ('pg_is_in_recovery', 'pg_stat_get_activity',"
    " 'pg_stat_get_wal_senders', 'pg_get_replication_slots') AND has_function_privilege(p.oid, 'EXECUTE')) = 6",
    (TRUTH,),
)
_REPLICATES = ControlQuery(
    "its replication",
    "SELECT pg_is_in_recovery() OR EXISTS (SELECT 1 FROM pg_stat_replication)"
    " OR EXISTS (SELECT 1 FROM pg_replication_slots)",
    (TRUTH,),
)

Query = Callable[[ControlQuery], list[tuple[Any, ...]]]


def before(
    query: Query,
    pooler_pid: int | None,
    cpu_placement: CpuPlacement,
    idle: IdleState,
    logins: Mapping[str, LoginConditions],
    server_here: bool,
) -> dict[str, Any]:
    """Facts that hold before the first block. `logins`: how clients log in, by route.

    `server_here`: the server runs on this machine.
    """
    return {
        "pgperf": pgperf.__version__,
        "python": platform.python_version(),
        "packages": packages(),
        "machine": {**_machine(), "has_server": server_here},
        "server": settings(query),
        SETTING_SOURCES: overriding_sources(query),
        **({REPLICATES: True} if replicates(query) else {}),
        "pooler": _pooler(pooler_pid),
        CONNECTIONS: {route: login.to_json() for route, login in logins.items()},
        "placement": cpu_placement.to_json(),
        "idle": idle.to_json(),
    }


#: Environment -> layer -> what its clients reported.
Versions = dict[str, dict[str, dict[str, str]]]


def note(versions: Versions, found: VariantBlock) -> None:
    """Add what the clients of a variant reported. Each of several pages has an answer of its own."""
    variant, own = found.variant, dict(found.versions)
    if variant.named and ANSWER in own:
        own[answer_of(variant.workload)] = own.pop(ANSWER)
    noted = versions.setdefault(variant.environment, {})
    noted[variant.layer] = {**noted.get(variant.layer, {}), **own}


def after(versions: Versions, usable: Mapping[str, UsableEnvironment]) -> dict[str, Any]:
    """The clients' own report: the driver of each layer and the libpq that it loaded. Those of other
    environments than the default one are with the versions of their packages.
    """
    others = {
        name: {**usable[name].installed.to_json(), "layers": found}
        for name, found in versions.items()
        if name != DEFAULT
    }
    return {"layers": versions.get(DEFAULT, {}), **({ENVIRONMENTS: others} if others else {})}


def settings(query: Query) -> dict[str, str | None]:
    """The server's settings by name, as SHOW prints them: those that figures depend on, and those
    that are not PostgreSQL's defaults.
    """
    return dict(query(_SERVER))


def overriding_sources(query: Query) -> dict[str, str]:
    """The `source` in pg_settings of each setting to which the configuration files do not apply: those
    of the role, the database and the command line.
    """
    return dict(query(_SOURCES))


def replicates(query: Query) -> bool | None:
    """Is the server a standby, or has it one or a replication slot? None: not known. From PostgreSQL
    9.4 on.
    """
    try:
        if all(sees for (sees,) in query(_SEES_REPLICATION)):
            return any(found for (found,) in query(_REPLICATES))
    except UnexpectedAnswer:
        pass
    return None


def packages() -> dict[str, str]:
    found = {}
    for name in (*_PACKAGES, *distributions()):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def _machine() -> dict[str, Any]:
    load = os.getloadavg()
    return {
        "kernel": platform.release(),
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _cpuinfo("model name"),
        "cpus": Host.here().cpus,
        "processors": len(os.sched_getaffinity(0)),
        "memory_bytes": psutil.virtual_memory().total,
        "governor": _read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "clocksource": _read("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        "hypervisor": _has_hypervisor(_cpuinfo("flags")),
        "steal_in_cpu_times": stolen_time.in_cpu_times(),
        "load_average": [round(value, 2) for value in load],
    }


def _has_hypervisor(flags: str | None) -> bool | None:
    """By the CPU's flags, which only x86 has; None where they are not readable."""
    return None if flags is None else "hypervisor" in flags.split()


def _pooler(pid: int | None) -> dict[str, str] | None:
    """Name and version of a pooler on this machine, from its own executable."""
    if not pid:
        return None
    try:
        process = psutil.Process(pid)
        name = process.name()
        if name != "pgbouncer":
            return {"name": name}
        text = subprocess.run([process.exe(), "--version"], capture_output=True, text=True, timeout=5).stdout
    except (psutil.Error, OSError, subprocess.TimeoutExpired):
        return None
    return {"name": name, "version": text.splitlines()[0] if text else ""}


def _cpuinfo(key: str) -> str | None:
    for line in (_read("/proc/cpuinfo") or "").splitlines():
        if line.startswith(key):
            return line.partition(":")[2].rstrip()
    return None


def _read(path: str) -> str | None:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return None
