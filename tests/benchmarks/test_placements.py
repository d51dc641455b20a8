"""benchmarks.placements: the half-width of a run, and its table."""

import pytest

from benchmarks.placements import PLACEMENTS, _print_times, half_width
from tests.benchmarks.made_up_runs import Run, comparison, row


def run(libpq_us: float, orm_us: float, width: float) -> Run:
    libpq, orm = row(libpq_us, layer="libpq"), row(orm_us, layer="django_orm")
    variants = [{**each, "label": f"{each['layer']} · socket"} for each in (libpq, orm)]
    return {"variants": variants, "comparisons": [comparison(orm, libpq, width)]}


def test_the_half_width_is_that_of_the_ratio() -> None:
    assert half_width(run(50, 300, 1.05)) == pytest.approx(0.05)


def test_the_table_has_medians_and_ratios(capsys: pytest.CaptureFixture[str]) -> None:
    runs = [run(50, 300, 1.02), run(60, 360, 1.02), run(90, 999, 1.02)]
    _print_times(dict.fromkeys(PLACEMENTS, runs))
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split() == ["libpq", "·", "socket", "60.0", "µs", "1.00", "60.0", "µs", "1.00"]
    assert lines[2].split() == ["django_orm", "·", "socket", "360.0", "µs", "6.00", "360.0", "µs", "6.00"]
