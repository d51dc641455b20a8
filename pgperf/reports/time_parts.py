"""The parts of one operation's time as charts and tables show them: those that the verdict's sentence
names, so that both tell the same.
"""

from pgperf.analysis.time_breakdown import PARTS
from pgperf.models import VariantResult


def time_parts(row: VariantResult) -> dict[str, float | None]:
    """µs by part, in the order of `PARTS`; None is not known, as all are without a CPU account.

    They are the verdict's numbers: the row's large columns, which the waits come from, are not read.
    Without a verdict the waiting stays whole.
    """
    record = row.record
    if record.cpu_account is None:
        return dict.fromkeys(PARTS)
    known = record.verdict.numbers.parts_us if record.verdict else record.time_parts()
    return {part: known.get(part) for part in PARTS}
