"""Which of many runs were much disturbed, as lists show it."""

from collections.abc import Collection, Iterable, Sequence

from pgperf.analysis.grade import GradeWord
from pgperf.core.records import VARIANT_FIELDS, Variant
from pgperf.models import VariantResult
from pgperf.reports.verdicts import nearest_to_a_site

#: With more workloads, a run's answer is about all of its variants.
_MOST_WORKLOADS = 2


def runs_in_doubt(runs: Collection[int]) -> frozenset[int]:
    """Those whose answer is about a much disturbed variant, as their pages say; in two queries."""
    poor = set(_poor(runs))
    judged = VariantResult.objects.filter(run__in={run for run, _label in poor}, control=0)
    judged = judged.filter(verdict__word__isnull=False).order_by("run", "position")
    by_run: dict[int, list[Variant]] = {}
    for run, *identity in judged.values_list("run_id", *VARIANT_FIELDS):
        by_run.setdefault(run, []).append(Variant.of_values(identity))
    return frozenset(
        run for run, found in by_run.items() if any((run, each.label) in poor for each in _answered(found))
    )


def _poor(runs: Collection[int]) -> Iterable[tuple[int, str]]:
    """The run and the label of each variant that was much disturbed."""
    rows = VariantResult.objects.order_by().filter(run__in=runs, control=0)
    return rows.filter(verdict__grade__word=GradeWord.POOR).values_list("run_id", "label")


def _answered(variants: Sequence[Variant]) -> Sequence[Variant]:
    is_suite = len({each.workload for each in variants}) > _MOST_WORKLOADS
    return variants if is_suite else nearest_to_a_site(variants)
