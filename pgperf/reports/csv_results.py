"""The results of runs as CSV and XLSX, each file made from one table."""

from collections.abc import Iterable

from import_export.formats.base_formats import CSV, XLSX

from pgperf.models import Run
from pgperf.reports import csv_files
from pgperf.reports.comparisons import all_comparisons
from pgperf.reports.file_tables import moment_table, process_table, variant_table
from pgperf.reports.load_hosts import all_uses
from pgperf.reports.rate_searches import search_table, step_table
from pgperf.reports.scaling import all_points
from pgperf.reports.staircases import all_steps
from pgperf.reports.suite import mean_table

CSV_TYPE = f"{CSV.CONTENT_TYPE}; charset=utf-8"
XLSX_TYPE = XLSX.CONTENT_TYPE


def variants_csv(*runs: Run) -> str:
    """A header line, then one row per variant, the oldest run first."""
    return csv_files.csv(_oldest_first(runs), variant_table, csv_files.long_lead)


def comparisons_csv(*runs: Run) -> str:
    """A header line, then one row per comparison, the oldest run first."""
    return csv_files.csv(_oldest_first(runs), all_comparisons, csv_files.long_lead)


def variants_xlsx(*runs: Run) -> bytes:
    """A workbook with one sheet: the rows of `variants_csv`."""
    return csv_files.xlsx(_oldest_first(runs), variant_table, csv_files.long_lead)


def comparisons_xlsx(*runs: Run) -> bytes:
    """A workbook with one sheet: the rows of `comparisons_csv`."""
    return csv_files.xlsx(_oldest_first(runs), all_comparisons, csv_files.long_lead)


def scaling_csv(*runs: Run) -> str:
    """One row per number of clients of each layer over each route, with the shares of the host's
    CPUs.
    """
    return csv_files.csv(runs, all_points, csv_files.short_lead)


def rate_searches_csv(*runs: Run) -> str:
    """One row per search for the highest rate."""
    return csv_files.csv(runs, search_table, csv_files.short_lead)


def rate_steps_csv(*runs: Run) -> str:
    """One row per slice of a search: the rate that it tried, and what became of it."""
    return csv_files.csv(runs, step_table, csv_files.short_lead)


def load_hosts_csv(*runs: Run) -> str:
    """One row per load host of each variant: the shares of its CPUs and its network that were used."""
    return csv_files.csv(runs, all_uses, csv_files.short_lead)


def timeline_csv(*runs: Run) -> str:
    """One row per moment: the CPU time of each role as a share of the host's."""
    return csv_files.csv(runs, moment_table, csv_files.short_lead)


def means_csv(*runs: Run) -> str:
    """One row per layer of a suite: the geometric mean of its time ratios."""
    return csv_files.csv(runs, mean_table, csv_files.short_lead)


def steps_csv(*runs: Run) -> str:
    """One row per step of a web site, with its effect over the step that it builds on."""
    return csv_files.csv(runs, all_steps, csv_files.short_lead)


def top_csv(*runs: Run) -> str:
    """One row per process in each variant's diagnostic slice."""
    return csv_files.csv(runs, process_table, csv_files.short_lead)


def _oldest_first(runs: Iterable[Run]) -> list[Run]:
    return sorted(runs, key=lambda run: run.pk)
