"""One load host and four: which bars hold."""

from typing import Any

import pytest

from benchmarks import fleet


def clocks(off_us: float = 0.0) -> dict[str, dict[str, float]]:
    """What was found of each host's clock, wrong by so much, with an error of 300 µs."""
    return {
        name: {"offset_ms": -1e3 * ahead_s + off_us / 1e3, "error_us": 300.0}
        for name, ahead_s in fleet.AHEAD_S.items()
    }


@pytest.mark.parametrize(
    ("facts", "compared", "broken"),
    [
        pytest.param({}, {}, [], id="all hold"),
        pytest.param({}, {"low": 1.001, "high": 1.019}, [], id="a difference within the margin"),
        pytest.param({}, {"low": 1.001, "high": 1.021}, ["throughput"], id="a difference beyond it"),
        pytest.param({}, {"low": 0.836, "high": 1.139}, ["throughput"], id="an interval that shows nothing"),
        pytest.param({"start_skew_us": 5001.0}, {}, ["starts"], id="starts too far apart"),
        pytest.param({"start_skew_us": None}, {}, ["starts"], id="starts not known"),
        pytest.param({"clocks": clocks(off_us=299.0)}, {}, [], id="clocks within their errors"),
        pytest.param({"clocks": clocks(off_us=-301.0)}, {}, ["clocks"], id="clocks beyond their errors"),
        pytest.param({"clocks": {}}, {}, ["clocks"], id="no clocks"),
    ],
)
def test_each_bar_can_break(facts: dict[str, Any], compared: dict[str, Any], broken: list[str]) -> None:
    found = fleet.held(
        {"start_skew_us": 4999.0, "clocks": clocks(), **facts},
        {"low": 0.99, "high": 1.03, **compared},
        0.02,
        1.1,
    )
    assert [name for name, holds in found.items() if not holds] == broken
