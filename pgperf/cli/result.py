"""A run for a terminal: the tables of its page that answer most questions."""

from collections.abc import Iterator

from pgperf.cli import text_table
from pgperf.models import Run
from pgperf.reports import (
    comparisons,
    connections,
    ladders,
    load_hosts,
    login_conditions,
    open_loops,
    published,
    rate_searches,
    run_ending,
    staircases,
    step_latency,
    suite,
    throughput,
    verdicts,
)
from pgperf.reports.labels import layer_notes, reasons
from pgperf.reports.run_rows import RunRows
from pgperf.reports.table import Table
from pgperf.runs import state

_IDLE = {
    "awake": "CPUs were kept awake; on an idle machine every call also pays for waking them (--idle system).",
    "system": "Idle CPUs could sleep: every call includes the time to wake them, and the figures scatter more.",
}


def report(rows: RunRows) -> str:
    """Ladders, rates, comparisons, verdicts, controls and cold phases, each where the run has it."""
    return text_table.report(_parts(rows))


def title(run: Run) -> str:
    """Benchmark, number, database and status."""
    quick = ", quick" if run.quick else ""
    return f"{run.benchmark_name} #{run.pk} on {run.database_name}{quick}: {state.effective_status(run)}"


def partial(run: Run) -> str:
    return "Partial results: the figures are those of its completed blocks." if run.partial else ""


def skipped(rows: RunRows) -> list[str]:
    """What the run left out, with the reasons."""
    return [f"Skipped {', '.join(titles)}: {reason}" for reason, titles in reasons(rows.skipped).items()]


def _parts(rows: RunRows) -> Iterator[str | Table]:
    yield _headline(rows.run)
    yield from suite.tables(rows)
    yield from step_latency.tables(rows)
    yield from staircases.tables(rows)
    yield "\n".join(step_latency.sentences(rows))
    shown = [] if rows.is_suite else rows.ladders
    yield from (ladders.ladder_table(ladder, shown) for ladder in shown)
    yield ladders.note(one_fit=rows.has_one_fit) if shown else ""
    yield "\n".join(rate_searches.sentences(rows))
    yield from rate_searches.tables(rows)
    yield "\n".join(open_loops.sentences(rows.variants))
    yield open_loops.rate_table(rows.variants)
    yield open_loops.note() if open_loops.with_rate(rows.variants) else ""
    yield step_latency.beside_steps(rows)
    yield from connections.tables(rows)
    yield connections.note(connections.reconnecting(rows.variants))
    yield published.source(rows)
    yield from comparisons.comparison_tables(_beyond_ladders(rows))
    yield "\n".join([*load_hosts.lost(rows), *login_conditions.notes(rows)])
    yield throughput.throughput_table(rows.off_ladders)
    yield "\n".join(layer_notes(rows.variants))
    yield load_hosts.use_table(rows.originals)
    yield verdicts.verdict_table(rows.variants, rows.savings)
    yield verdicts.withheld(rows.variants)
    yield "\n".join(verdicts.failed_checks(rows.variants))
    yield comparisons.control_table(rows.comparisons)
    yield throughput.cold_table(rows.variants)
    yield "\n".join(skipped(rows))


def _headline(run: Run) -> str:
    idle = (run.environment.get("idle") or {}).get("idle", "")
    return "\n".join(filter(None, (title(run), partial(run), run_ending.sentence(run), _IDLE.get(idle))))


def _beyond_ladders(rows: RunRows) -> list[comparisons.ComparisonResult]:
    """The comparisons that no ladder shows: of anything but layers and routes, and of variants on no
    ladder.
    """
    of_ladders = (comparisons.ComparisonKind.LAYER, comparisons.ComparisonKind.ROUTE)
    off = set(rows.off_ladders)
    return [row for row in rows.comparisons if comparisons.kind(row) not in of_ladders or row.variant in off]
