"""The costs that the script prints."""

import sys

import pytest

from benchmarks import exhaustion
from pgperf.runner.client_process import ClientProcess


@pytest.mark.parametrize("title", exhaustion.FILES)
def test_each_file_is_refused_within_the_bar(title: str) -> None:
    name, content = exhaustion.FILES[title]
    cpu_s, mb, refused = exhaustion._cost(exhaustion.ROOT, name, content.encode())
    assert refused
    assert 0 < cpu_s <= exhaustion.MAX_CPU_S
    assert 0 <= mb <= exhaustion.MAX_MB


def test_a_peak_is_that_of_memory_which_is_free_again() -> None:
    script = "held = bytearray(60 << 20); del held; print(flush=True); input()"
    with ClientProcess("script", [sys.executable, "-c", script]) as client:
        with exhaustion._peaks_of([client]) as peaks:
            client._read_line(60)
        assert 60 < peaks()[0] < 120
