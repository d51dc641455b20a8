"""The workloads of a suite by layers: a heat map, its figures and bars, setting by setting."""

from pgperf.reports import published, suite
from pgperf.reports.run_rows import RunRows
from pgperf.reports.sections import Part


def part(rows: RunRows) -> Part:
    settings = suite.settings(rows)
    if not settings:
        return {}
    means = suite.mean_table(rows)
    tables = [suite.published_table(each, settings) for each in settings]
    return {
        "headlines": suite.headlines(settings),
        "settings": [
            {
                "title": suite.setting_title(each, settings),
                "heat": suite.heat_map(each, settings),
                "chart": None if each.like.is_open_loop else suite.bars(each, settings),
                "numbers": suite.number_table(each, settings),
            }
            for each in settings
        ],
        "means": means if means.rows else None,
        "published": [table for table in tables if table.rows],
        "source": published.source(rows),
        "note": suite.note(settings),
    }
