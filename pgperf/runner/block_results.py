"""The results of a block: each variant's measurements as one record."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pgperf.analysis import latency
from pgperf.core import layers, protocol
from pgperf.core.records import VariantBlock
from pgperf.runner.client_group import ClientGroup
from pgperf.runner.load_accounts import by_host, server_account
from pgperf.runner.processes import pooler_process
from pgperf.runner.remote import server
from pgperf.runner.remote.server import Agent, AgentSamples
from pgperf.runner.run_context import VariantMeasurements
from pgperf.runner.slice_window import Durations


def fold(
    group: ClientGroup, cohort: int, block: int, measurements: VariantMeasurements, counted: dict[str, Any]
) -> VariantBlock:
    counting = [window for window in measurements.windows if not window.errors]
    ended = _together([window.durations for window in counting])
    latencies = _together([window.latencies for window in counting])
    parts = [window.by_phase() for window in counting]
    first = group.ready[0]
    return VariantBlock(
        variant=group.variant,
        cohort=cohort,
        block=block,
        slices=tuple(measurements.records),
        histogram=latency.fold(latencies),
        cold_us={} if group.owner else _cold(first),
        versions=dict(first.versions),
        rows_per_op=first.rows_per_op,
        **_latency_sums(latencies, ended),
        phases={name: latency.sums(_together([each[name] for each in parts])) for name in parts[0]}
        if parts
        else {},
        diagnostics=measurements.diagnosis.found.diagnostics,
        top=measurements.diagnosis.found.top,
        http=_http(measurements) if layers.over_http(group.variant.layer) else {},
        cpu_account=_cpu_account(group, measurements, counted),
    )


def _latency_sums(latencies: Durations, ended: Durations) -> dict[str, Any]:
    """The least is of those that ended, if any did: an operation that was due just before the end has
    waited for next to nothing.
    """
    least = ended if len(ended) else latencies
    return {
        "latency_sum_ns": int(latencies.sum()),
        "latency_sum_sq": float(np.square(latencies.astype(np.float64)).sum()),
        "latency_min_ns": int(least.min()) if len(least) else 0,
        "latency_max_ns": int(latencies.max()) if len(latencies) else 0,
    }


def own_counts(counted: dict[str, Any], group: ClientGroup) -> dict[str, Any]:
    """What was counted in the block of all processes, and of this group's."""
    return {**counted, **group.totals.to_json()}


def _cpu_account(
    group: ClientGroup, measurements: VariantMeasurements, counted: dict[str, Any]
) -> dict[str, Any]:
    return {
        **counted,
        **_role_cpus(counted, group),
        **_remote_account(measurements, counted),
        **by_host(counted, measurements.by_host),
        **({"missing_grant": group.missing_grant} if group.missing_grant else {}),
        **({"web_workers": len(group.web.workers)} if group.web.workers else {}),
        **({"server_unknown": group.server_unknown} if group.server_unknown else {}),
    }


def _http(measurements: VariantMeasurements) -> dict[str, Any]:
    """The requests of a block, failed ones and lead-ins included."""
    lengths = [length for window in measurements.windows for length in window.lengths]
    return {
        "requests": sum(record.ops + record.lead_in_ops for record in measurements.records),
        "errors": dict(sum((Counter(window.errors) for window in measurements.windows), Counter())),
        "lengths": [min(lengths), max(lengths)] if lengths else [],
    }


def _together(durations: Sequence[Durations]) -> Durations:
    return np.concatenate(durations) if durations else np.zeros(0, dtype=np.uint64)


def _role_cpus(counted: dict[str, Any], group: ClientGroup) -> dict[str, Any]:
    beside = {"pooler_beside_server": True} if group.pooler_beside_server else {}
    database = {"database": group.database_cpus} if group.database_cpus else {}
    pooler = pooler_process.processors(group.pooler_pid)
    return {"role_cpus": {**counted["role_cpus"], "pooler": pooler, **beside, **database}}


def _remote_account(measurements: VariantMeasurements, counted: Mapping[str, Any]) -> dict[str, Any]:
    """The account of the server's host, if that is no load host: by an agent, or by this process."""
    here = server_account(measurements.server_accounts, counted.get("own_cpus", 0))
    found = measurements.remote_account or here
    return {"server_host": found} if found else {}


def _cold(ready: protocol.Ready) -> dict[str, float | None]:
    return {
        "startup": ready.startup_us,
        "connect": ready.connect_us,
        "first": ready.first_us,
        "second": ready.second_us,
        "next_ten": ready.next_ten_us,
        "other_query_first": ready.other_first_us,
        "other_query_second": ready.other_second_us,
    }


def complete_remote(
    agent: Agent | None, groups: list[ClientGroup], measured: list[VariantMeasurements]
) -> None:
    """Complete the records with the samples of the agent on the server's host, if there is one."""
    seen = agent.hand_over() if agent else None
    if not seen:
        return
    pairs = zip(groups, measured, strict=True)
    found = server.complete_slices(
        [
            server.VariantSlices(g.remote_processes, measurements.records, measurements.ends_ns)
            for g, measurements in pairs
        ],
        seen,
    )
    for measurements, one in zip(measured, found, strict=True):
        measurements.records, measurements.remote_account = one.records, one.account
    _complete_remote_top(groups, measured, seen)


def _complete_remote_top(
    groups: list[ClientGroup], measured: list[VariantMeasurements], seen: AgentSamples
) -> None:
    """Complete the diagnostic slices' top with the server's host and its processes."""
    both = zip(groups, measured, strict=True)
    shown = sorted(
        (measurements.diagnosis.span_ns, at)
        for at, (_group, measurements) in enumerate(both)
        if measurements.diagnosis.span_ns
    )
    looks = [
        server.DiagnosticInterval(
            groups[at].remote_processes, begin_ns, end_ns, measured[at].diagnosis.found.top["seconds"]
        )
        for (begin_ns, end_ns), at in shown
    ]
    for (_span, at), found in zip(shown, server.complete_top(looks, seen), strict=True):
        told = measured[at].diagnosis.found.top
        told["processes"] = [*told["processes"], *found["processes"]]
        told["server_host"] = {"host": found["host"]}
