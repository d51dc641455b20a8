"""The steps of a web site, each with its own effect."""

from pgperf.reports import cpu_accounting, published, staircases, step_latency
from pgperf.reports.run_rows import RunRows
from pgperf.reports.sections import Part


def part(rows: RunRows) -> Part:
    found = staircases.found(rows)
    if not found:
        return {}
    return {
        "staircases": [
            {
                "title": staircases.title(each, found),
                "headlines": staircases.headlines(each),
                "throughput": staircases.throughput(each),
                "percentiles": step_latency.percentiles(each),
                "percentile_table": step_latency.percentile_table(each, found),
                "advice": step_latency.advice(each, rows.run.benchmark_name),
                "response_time": staircases.response_time(each),
                "effects": staircases.effects(each),
                "spent": cpu_accounting.spent_of(each.shown),
                "table": staircases.table(each, found),
                "published": staircases.published_table(each, found),
            }
            for each in found
        ],
        "note": staircases.note() if any(step.own for each in found for step in each.steps) else "",
        "source": published.source(rows),
    }
