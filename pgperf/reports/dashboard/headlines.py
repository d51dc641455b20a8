"""The headline figures of runs, with the variants that they are of."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from django.utils.translation import gettext as _

from pgperf.analysis.grade import Grade, GradeWord
from pgperf.analysis.headline import figure, headline
from pgperf.core.records import VARIANT_FIELDS, Variant
from pgperf.core.time_units import unit_of
from pgperf.models import Run, VariantResult
from pgperf.reports import number_format
from pgperf.reports.dashboard.viewer import Viewer
from pgperf.reports.labels import variant_title
from pgperf.reports.verdicts import ShownVerdict, verdict_of

#: What the dashboard shows of a run; the definition, the environment and the summary are large.
_OF_RUN = ("benchmark_id", "benchmark_name", "database_id", "database_name", "status", "quick",
           "definition_hash", "finished_at", "error")  # fmt: skip
_OF_ROW = (*VARIANT_FIELDS, "run_id", "label", "ops_per_s", "us_per_op", "us_per_op_low", "us_per_op_high",
           "cpu_us_per_op", "cpu_account", "verdict")  # fmt: skip


@dataclass(frozen=True)
class Headline:
    """The variants of one run that its headline figure is of: one, or one for each workload."""

    run: Run
    rows: Sequence[VariantResult]

    @property
    def labels(self) -> list[str]:
        return [row.label for row in self.rows]

    @property
    def row(self) -> VariantResult | None:
        """The variant, where the run has one workload or two; None for a suite."""
        return self.rows[0] if len(self.rows) == 1 else None

    @property
    def us(self) -> float | None:
        """µs per operation; of a suite, the geometric mean over its workloads."""
        return figure([row.us_per_op for row in self.rows])

    @property
    def title(self) -> str:
        """What the figure is of."""
        if self.row:
            return variant_title(self.row)
        layer = variant_title(replace(self.rows[0].identity, named=False))
        return _("%(layer)s, geometric mean of %(count)d workloads") % {
            "layer": layer,
            "count": len(self.rows),
        }

    @property
    def interval(self) -> str:
        """Its 95 % interval, in the unit of the figure; "" where the run gave none."""
        row = self.row
        if row is None or row.us_per_op_low is None or row.us_per_op_high is None:
            return ""
        return number_format.in_unit(
            unit_of([row.us_per_op]), number_format.interval, row.us_per_op_low, row.us_per_op_high
        )

    @property
    def most_disturbed(self) -> tuple[VariantResult | None, Grade]:
        """The variant that others took the most time of."""
        grades = [(row, verdict.grade) for row in self.rows if (verdict := row.record.verdict)]
        return max(grades, key=lambda each: each[1].share or 0.0, default=(None, Grade()))

    @property
    def caution(self) -> str:
        """Why its figure is not to be relied on; "" where nothing is known against it."""
        is_poor = self.most_disturbed[1].word == GradeWord.POOR
        return _("much disturbed") if is_poor else ""

    @property
    def verdicts(self) -> list[ShownVerdict]:
        return [found for row in self.rows if (found := verdict_of(row))]


def headlines(viewer: Viewer, runs: Collection[int]) -> dict[int, Headline]:
    """The headlines of these runs, by the primary key of the run, in three queries. A run without
    variants has none.
    """
    found = viewer.rows(Run).filter(pk__in=runs).only(*_OF_RUN).in_bulk()
    rows = VariantResult.objects.filter(pk__in=_chosen(found)).only(*_OF_ROW)
    by_run: dict[int, list[VariantResult]] = {}
    for row in rows:
        by_run.setdefault(row.run_id, []).append(row)
    return {pk: Headline(found[pk], by_run[pk]) for pk in by_run}


def _chosen(runs: Iterable[int]) -> list[int]:
    """The primary keys of the headline variants of the runs."""
    rows = VariantResult.objects.filter(run__in=runs, control=0).order_by("run", "position")
    by_run: dict[int, dict[int, Variant]] = {}
    for run, pk, *identity in rows.values_list("run_id", "pk", *VARIANT_FIELDS):
        by_run.setdefault(run, {})[pk] = Variant.of_values(identity)
    return [pk for variants in by_run.values() for pk in _of_headline(variants)]


def _of_headline(variants: Mapping[int, Variant]) -> list[int]:
    """Of one run, in the order of its page."""
    chosen = set(headline([*variants.values()]))
    return [pk for pk, each in variants.items() if each in chosen]
