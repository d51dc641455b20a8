"""The C client computes the schedule of `pgperf.core.schedule`, to the nanosecond."""

import subprocess
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from pgperf.core import protocol
from pgperf.core.schedule import intended_starts
from tests.clients.libpq.programs import compile_program

OPERATIONS = 300


@pytest.fixture(scope="module")
def program(modules: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_program("dump_schedule", tmp_path_factory.mktemp("schedule"), modules)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rate=st.floats(protocol.MIN_RATE, protocol.MAX_RATE),
    kind=st.sampled_from(protocol.SCHEDULES),
    seed=st.integers(0, 2**63 - 1),
)
@example(protocol.MIN_RATE, "exponential", 2**63 - 1)
@example(protocol.MAX_RATE, "exponential", 0)
@example(protocol.MAX_RATE, "constant", 0)
def test_both_languages_compute_the_same_schedule(program: Path, rate: float, kind: str, seed: int) -> None:
    argv = [str(program), repr(rate), kind, str(seed), str(OPERATIONS)]
    printed = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=True).stdout
    request = protocol.Slice(seq=1, rate=rate, schedule=kind, seed=seed)
    assert [int(line) for line in printed.split()] == list(islice(intended_starts(request), OPERATIONS))
