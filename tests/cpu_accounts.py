"""The parts of a run beside its times, made without a run: CPU account, top, diagnostics, verdicts,
timeline.
"""

import math
from typing import Any

from pgperf.analysis import verdict_kinds
from pgperf.analysis.consistency_checks import Checks, LittlesLaw, UtilisationLaw
from pgperf.analysis.time_breakdown import TimeBreakdown
from pgperf.models import Run, VariantResult

CPUS = 2
CLIENTS = (1, 2, 4, 8, 16, 32)


def add_cpu_accounts(run: Run) -> Run:
    """Give each variant a CPU account, top and diagnostics that agree with its times, and the run a
    timeline.
    """
    rows = list(run.variants.all())
    for row in rows:
        row.cpu_us_per_op |= {"auxiliaries": 0.4, "other": 2.6, "unattributed": 1.1}
        row.cpu_account, row.top, row.diagnostics = cpu_account(row), top(row), diagnostics(row)
        row.verdict = verdict(row)
    VariantResult.objects.bulk_update(rows, ["cpu_us_per_op", "cpu_account", "top", "diagnostics", "verdict"])
    run.summary |= {"timeline": timeline([row.label for row in rows if not row.control])}
    run.summary |= {"scaling": scaling(rows)} if len({row.clients for row in rows}) > 1 else {}
    run.save()
    return run


def cpu_account(row: VariantResult) -> dict[str, Any]:
    return {
        "cpus": CPUS,
        "elapsed_s": 6.0,
        "source": "cgroup",
        "share": shares(row),
        "wait_us_per_op": {
            "client": 1.4 * row.clients, "pooler": 0.9 if pooled(row) else 0.0, "server": 1.1 * row.clients,
        },
        "switches_per_op": {
            "client_voluntary": 1.0, "client_involuntary": 0.002, "pooler_voluntary": 2.0 if pooled(row) else 0.0,
            "pooler_involuntary": 0.0, "server_voluntary": 1.01, "server_involuntary": 0.004,
        },
        "system_share": {"client": 0.2, "pooler": 0.7, "server": 0.5},
        "server_host": None,
        "busiest": {
            "client": _share(row, "client_user") + _share(row, "client_sys"), "pooler": _share(row, "pooler"),
            "server": _share(row, "server"),
        },
    }  # fmt: skip


def shares(row: VariantResult) -> dict[str, float]:
    """Shares of the time of all CPUs; the rest is idle."""
    used = {
        "clients": _share(row, "client_user") + _share(row, "client_sys"),
        "proxy": 0.0,
        "web": 0.0,
        **{role: _share(row, role) for role in ("pooler", "server", "auxiliaries", "other", "unattributed")},
        "iowait": 0.004 * CPUS,
        "steal": 0.012 * CPUS,
    }
    share = {role: value / CPUS for role, value in used.items()}
    return share | {"idle": max(0.0, 1 - sum(share.values()))}


def top(row: VariantResult) -> dict[str, Any]:
    share = shares(row)
    server = _process("server", 5100, "postgres", 100 * _share(row, "server") / row.clients, 18_874_368, 1.02)
    client = _process("client", 4100, _PROGRAMS.get(row.layer, "python3"), 38.2, 41_943_040, 3.4)
    processes = [client | {"pid": 4100 + at, "cpu_percent": 30.0 + at} for at in range(row.clients)]
    processes += [server | {"pid": 5100 + at, "cpu_s": 1.0 + at / 10} for at in range(row.clients)]
    if pooled(row):
        processes.append(_process("pooler", 3001, "pgbouncer", 21.4, 9_437_184, 61.2))
    processes.append(_process("other", 77, "python3", 3.1, 120_586_240, 512.8))
    host = {
        "us": 100 * share["clients"], "sy": 6.2, "ni": 0.0, "id": 100 * share["idle"], "wa": 0.4, "hi": 0.0, "si": 0.7,
        "st": 1.2, "load1": 1.31, "load5": 0.94, "load15": 0.61,
    }  # fmt: skip
    return {"seconds": 1.0, "host": host, "processes": processes}


def diagnostics(row: VariantResult) -> dict[str, Any]:
    pooler = {
        "queries": 4711, "queries_per_op": 1.0, "wait_us_per_query": 2.4, "query_us_per_query": 31.0, "sv_idle_min": 0,
        "sv_active_max": 1, "cl_active_max": row.clients, "cl_waiting_max": 3, "maxwait_us_max": 41,
        "pool_mode": "session", "polls": 12,
    }  # fmt: skip
    return {
        "seconds": 1.0,
        "samples": 160,
        "wait_events": {"CPU": 0.32, "Client": 0.61, "LWLock": 0.05, "Lock": 0.02},
        "events": {"Client:ClientRead": 0.61, "LWLock:WALWrite": 0.05, "Lock:transactionid": 0.02},
        "pooler": pooler if pooled(row) else None,
        "statements": {"calls_per_op": 1.0, "rows_per_op": 1.0, "as_expected": True},
        "notes": {} if pooled(row) else {"pooler": "this route has no pooler"},
    }


def verdict(row: VariantResult) -> dict[str, Any]:
    """As the analysis judges a row like this one, of six blocks that agree."""
    row.verdict = {}
    blocks = [TimeBreakdown.of(row.record)] * 6
    return verdict_kinds.judge(row.record, checks(row), blocks).to_json()


def checks(row: VariantResult, holds: bool = True) -> Checks:
    """Little's law and the utilisation law, as the analysis checks them."""
    busy, accounted = _share(row, "server"), row.clients * (0.99 if holds else 0.8)
    law = UtilisationLaw(busy, busy * (1.01 if holds else 1.4), holds)
    return Checks(LittlesLaw(row.clients, accounted, 0.4, holds), {"server": law})


def timeline(labels: list[str], points: int = 120) -> dict[str, Any]:
    """Two minutes with a wave in every role and a neighbour that comes and goes."""
    waves = [0.5 + 0.5 * math.sin(at / 7) for at in range(points)]
    roles = {
        "clients": [0.20 + 0.14 * wave for wave in waves],
        "pooler": [0.02 + 0.03 * wave for wave in reversed(waves)],
        "server": [0.08 + 0.05 * wave for wave in waves],
        "auxiliaries": [0.002] * points,
        "other": [0.18 if 40 <= at < 60 else 0.02 for at in range(points)],
        "unattributed": [0.01] * points,
        "iowait": [0.003] * points,
        "steal": [0.06 if 80 <= at < 90 else 0.004 for at in range(points)],
    }
    roles["idle"] = [1 - sum(role[at] for role in roles.values()) for at in range(points)]
    return {
        "seconds": [1.0 * at for at in range(points)],
        "roles": roles,
        "variant": [labels[at % len(labels)] for at in range(points)],
        "block": [0] * points,
    }


def scaling(rows: list[VariantResult]) -> list[dict[str, Any]]:
    """The variants that differ in nothing but their clients, as analysis keeps them."""
    series: dict[tuple[str, ...], list[VariantResult]] = {}
    for row in rows:
        if not row.control:
            series.setdefault((row.workload, row.layer, row.mode, row.route, row.connect), []).append(row)
    return [
        dict(zip(("workload", "layer", "mode", "route", "connect"), key, strict=True))
        | {"points": _points(members)}
        for key, members in series.items()
    ]


def pooled(row: VariantResult) -> bool:
    return row.route.startswith("pgbouncer")


_PROGRAMS = {"libpq": "pgperf-libpq"}


def _points(rows: list[VariantResult]) -> list[dict[str, Any]]:
    first = rows[0].ops_per_s or 1.0
    return [
        {
            "clients": row.clients, "ops_per_s": row.ops_per_s, "low": row.ops_per_s * 0.97,
            "high": row.ops_per_s * 1.03, "p50_us": row.latency_us["p50"], "p99_us": row.latency_us["p99"],
            "efficiency": row.ops_per_s / first / row.clients,
        }
        for row in rows
    ]  # fmt: skip


def _share(row: VariantResult, role: str) -> float:
    """Processors that a role keeps busy."""
    return float(row.cpu_us_per_op.get(role) or 0.0) * float(row.ops_per_s or 0.0) / 1e6


def _process(role: str, pid: int, name: str, percent: float, rss: int, cpu_s: float) -> dict[str, Any]:
    used = {"cpu_percent": percent, "rss_bytes": rss, "cpu_s": cpu_s}
    return {"role": role, "pid": pid, "name": name, "user": "app", **used}
