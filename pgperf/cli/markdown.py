"""A run as Markdown to paste into a ticket: the tables of its page as pipe tables."""

from collections.abc import Iterator

from pgperf.cli import result
from pgperf.models import Run
from pgperf.reports import (
    comparisons,
    connections,
    cpu_accounting,
    environment,
    ladders,
    load_hosts,
    login_conditions,
    open_loops,
    published,
    rate_searches,
    run_ending,
    scaling,
    staircases,
    step_latency,
    suite,
    verdicts,
)
from pgperf.reports.labels import layer_notes
from pgperf.reports.markdown_table import cells, escaped, table
from pgperf.reports.run_names import named
from pgperf.reports.run_rows import RunRows
from pgperf.reports.table import Table

_HASH_CHARACTERS = 12


def markdown(rows: RunRows) -> str:
    """Headline, verdicts, ladders, rates, time breakdown, scaling, comparisons, controls, environment
    in short.
    """
    shown = (part if isinstance(part, str) else table(part) for part in _parts(rows))
    return "\n\n".join(filter(None, shown))


def _parts(rows: RunRows) -> Iterator[str | Table]:
    yield _headline(rows)
    yield verdicts.verdict_table(rows.variants, rows.savings)
    yield escaped(verdicts.withheld(rows.variants))
    yield "\n\n".join(cells(verdicts.failed_checks(rows.variants)))
    yield from suite.tables(rows)
    yield from step_latency.tables(rows)
    yield from staircases.tables(rows)
    yield "\n\n".join(cells(step_latency.sentences(rows)))
    shown = [] if rows.is_suite else rows.ladders
    yield from (ladders.ladder_table(ladder, shown) for ladder in shown)
    yield ladders.note(one_fit=rows.has_one_fit) if shown else ""
    yield "\n\n".join(cells(rate_searches.sentences(rows)))
    yield from rate_searches.tables(rows)
    yield "\n\n".join(cells(open_loops.sentences(rows.variants)))
    yield open_loops.rate_table(rows.variants)
    yield step_latency.beside_steps(rows)
    yield from connections.tables(rows)
    yield escaped(connections.note(connections.reconnecting(rows.variants)))
    yield escaped(published.source(rows))
    yield cpu_accounting.spent_table(rows.originals)
    yield scaling.scaling_table(rows.scaling, rows)
    yield from comparisons.comparison_tables(rows.comparisons)
    yield "\n\n".join(map(escaped, [*load_hosts.lost(rows), *login_conditions.notes(rows)]))
    yield "\n\n".join(map(escaped, layer_notes(rows.variants)))
    yield comparisons.control_table(rows.comparisons)
    yield _environment(rows.run)


def _headline(rows: RunRows) -> str:
    run = rows.run
    moments = [moment.isoformat() for moment in (run.started_at, run.finished_at) if moment]
    when = " to ".join(moments) or "not started"
    lines = [
        f"### {escaped(result.title(run))}",
        result.partial(run),
        escaped(run_ending.sentence(run)),
        escaped(named(run.error)),
        f"{when}; definition `{run.definition_hash[:_HASH_CHARACTERS]}`",
        *map(escaped, result.skipped(rows)),
    ]
    return "\n\n".join(filter(None, lines))


def _environment(run: Run) -> str:
    line = environment.environment_line(run.environment)
    return f"**Environment**: {escaped(line)}" if line else ""
