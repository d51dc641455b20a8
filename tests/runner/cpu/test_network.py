"""What a load host's network carried, from the counters of its interfaces."""

from pathlib import Path

import pytest

from pgperf.runner.cpu import network
from pgperf.runner.cpu.network import Traffic, bytes_between

HEAD = """Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier
"""
MB = 1_000_000


@pytest.fixture
def written(tmp_path: Path) -> Path:
    path = tmp_path / "dev"
    path.write_text(
        f"{HEAD}    lo: 70 1 0 0 0 0 0 0 70 1 0 0 0 0 0 0\n  eth0:500 1 0 0 0 0 0 0 300 1 0 0 0 0 0 0\n"
    )
    return path


def test_the_counters_of_interfaces_to_others(written: Path) -> None:
    assert network.so_far(written) == {"eth0": (500, 300)}


def test_this_machine_can_be_read() -> None:
    assert bytes_between(network.so_far(), network.so_far()) is not None


def test_counters_that_cannot_be_read_are_unknown(tmp_path: Path) -> None:
    assert network.so_far(tmp_path / "missing") is None
    assert bytes_between(None, {}) is None


@pytest.mark.parametrize(
    ("before", "after", "carried"),
    [
        ({"eth0": (900 * MB, 0)}, {"eth0": (901 * MB, 10 * MB)}, 10 * MB),
        ({"eth0": (0, 0), "bond0": (0, 0)}, {"eth0": (0, 10 * MB), "bond0": (0, 10 * MB)}, 10 * MB),
        ({"eth0": (0, 0), "eth1": (800 * MB, 0)}, {"eth0": (7 * MB, 0), "eth1": (800 * MB, 0)}, 7 * MB),
        ({"eth0": (5, 5)}, {"eth0": (1, 1), "new": (10 * MB, 0)}, 0),
        ({}, {}, 0),
    ],
    ids=[
        "less than it received before",
        "twice the same bytes",
        "the quieter one so far",
        "replaced",
        "none",
    ],
)
def test_the_busiest_interface_counts(before: Traffic, after: Traffic, carried: int) -> None:
    assert bytes_between(before, after) == carried
