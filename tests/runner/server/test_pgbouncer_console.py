"""What PgBouncer's console says of a pool (tests with a real one: test_diagnostics)."""

import pytest

from pgperf.runner.server.pgbouncer_console import with_whole_wait


@pytest.mark.parametrize(
    ("pool", "maxwait_us"),
    [
        ({"maxwait": "2", "maxwait_us": "50000"}, "2050000"),
        ({"maxwait": "0", "maxwait_us": "50000"}, "50000"),
        ({"maxwait": "2", "maxwait_us": "2050000"}, "2050000"),  # as PgDog has it
        ({"maxwait_us": "50000"}, "50000"),
        ({"maxwait": "2", "maxwait_us": ""}, ""),
        ({"maxwait": "", "maxwait_us": "50000"}, "50000"),
    ],
)
def test_the_longest_wait_has_its_whole_seconds(pool: dict[str, str], maxwait_us: str) -> None:
    assert with_whole_wait(pool)["maxwait_us"] == maxwait_us


def test_no_pool_has_no_wait() -> None:
    assert with_whole_wait({}) == {}
