"""Ratios of two programs that were started several times.

Two processes of one program differ by 1 to 2 % for as long as they live. So the slices of one pair of
processes are one value, as those of a run's block are.
"""

from collections.abc import Sequence

import numpy as np

from pgperf.analysis.paired_statistics import Estimate, log_ratios
from pgperf.analysis.samples import interval, sample_of

#: By process, then by slice.
Figures = Sequence[Sequence[float]]


def ratio(ours: Figures, theirs: Figures) -> Estimate:
    """Ours over theirs with its 95 % interval, from positive numbers in pairs."""
    pairs = zip(ours, theirs, strict=True)
    return interval(sample_of([log_ratios(np.array(own), np.array(other)) for own, other in pairs])).exp()
