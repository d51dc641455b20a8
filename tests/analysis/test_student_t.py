import pytest
from scipy import stats

from pgperf.analysis import student_t


@pytest.mark.parametrize("df", [1, 2, 3, 4, 5, 10, 31, 100])
@pytest.mark.parametrize("confidence", [0.6, 0.95, 0.99, 0.9995])
def test_quantile_is_scipys(confidence: float, df: int) -> None:
    assert student_t.quantile(confidence, df) == pytest.approx(
        stats.t.ppf((1 + confidence) / 2, df), rel=1e-9
    )


@pytest.mark.parametrize("df", [1, 2, 3, 6, 7, 40])
def test_coverage_is_scipys(df: int) -> None:
    assert student_t.coverage(1.7, df) == pytest.approx(1 - 2 * stats.t.sf(1.7, df), rel=1e-12)
