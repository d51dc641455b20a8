"""The only writer of results, and the reader that turns stored blocks back into records."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from itertools import groupby
from typing import Any

from django.db import router, transaction

from pgperf.analysis.variant_comparisons import VariantComparison
from pgperf.analysis.verdict import Verdict
from pgperf.core.records import VARIANT_FIELDS, Timings, Variant, VariantBlock
from pgperf.models import BlockResult, ComparisonResult, Run, VariantResult
from pgperf.runs import block_codec, state


def save_blocks(run: Run, blocks: Iterable[VariantBlock]) -> None:
    """Keep what one block gave, once however often it is given.

    Raises FenceLost when another attempt has the run.
    """
    rows = [_block_row(run, list(variants)) for _key, variants in groupby(blocks, _cohort_and_block)]
    using = router.db_for_write(Run)
    with transaction.atomic(using=using):
        state.lock_attempt(run)
        BlockResult.objects.using(using).bulk_create(rows, ignore_conflicts=True)


def save_skipped(run: Run, skipped: Sequence[Mapping[str, str]]) -> None:
    """Keep what the plan of a run leaves out, until its summary has that.

    Raises FenceLost when another attempt has the run.
    """
    with transaction.atomic(using=router.db_for_write(Run)):
        state.lock_attempt(run)
        _update(run, summary={"skipped": finite(skipped)})


def save_facts(run: Run, environment: Mapping[str, Any], timings: Timings) -> None:
    """Keep a run's environment and where its time went."""
    facts = {"environment": finite(environment), "timings": finite(timings.to_json())}
    _update(run, **facts)


def save_environment(run: Run, environment: Mapping[str, Any]) -> None:
    """Keep the environment of a run that ended early."""
    _update(run, environment=finite(environment))


def save_summary(run: Run, summary: Mapping[str, Any], **more: Any) -> None:
    """Replace a run's summary: its rows, and the rest (with `more`) on the run.

    Call inside a transaction.
    """
    using = router.db_for_write(Run)
    rest = {key: value for key, value in summary.items() if key not in ("variants", "comparisons")}
    with transaction.atomic(using=using):
        _replace(run, VariantResult, summary["variants"])
        named = VariantResult.objects.using(using).filter(run=run).only(*VARIANT_FIELDS)
        stored = {row.identity: row for row in named}
        _replace(run, ComparisonResult, [_comparison_row(each, stored) for each in summary["comparisons"]])
        _update(run, summary=finite({**rest, **more}), analysis_version=summary["analysis_version"])


def save_verdict(row: VariantResult, verdict: Verdict) -> None:
    """Replace the verdict on a variant, of a run that ended, by the tested one."""
    own = VariantResult.objects.using(router.db_for_write(Run)).filter(pk=row.pk)
    own.update(verdict=finite(verdict.to_json()))


def load_blocks(run: Run) -> list[VariantBlock]:
    """The finished blocks of a run, as they were measured, in the order of their blocks."""
    rows = (
        BlockResult.objects.using(router.db_for_write(Run)).filter(run=run).order_by("block", "cohort", "id")
    )
    return [block for row in rows for block in block_codec.decode(bytes(row.data))]


def finite(value: Any) -> Any:
    """The value with null for every number that JSON does not have."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return value


def _comparison_row(comparison: VariantComparison, stored: Mapping[Variant, VariantResult]) -> dict[str, Any]:
    numbers = {each.name: getattr(comparison, each.name) for each in fields(comparison)}
    both = {"variant": stored[comparison.variant], "baseline": stored[comparison.baseline]}
    return {**numbers, **both}


def _replace(run: Run, model: Any, rows: Iterable[Mapping[str, Any]]) -> None:
    own = model.objects.using(router.db_for_write(Run))
    own.filter(run=run).delete()
    own.bulk_create(model(run=run, position=position, **finite(row)) for position, row in enumerate(rows))


def _update(run: Run, **fields: Any) -> None:
    using = router.db_for_write(Run)
    Run.objects.using(using).filter(pk=run.pk).update(**fields)
    run.refresh_from_db(using=using, fields=list(fields))


def _cohort_and_block(block: VariantBlock) -> tuple[int, int]:
    return block.cohort, block.block


def _block_row(run: Run, variants: Sequence[VariantBlock]) -> BlockResult:
    cohort, block = _cohort_and_block(variants[0])
    data = block_codec.encode(variants, plain=finite)
    return BlockResult(run=run, attempt=run.attempt, cohort=cohort, block=block, data=data)
