"""CPUs are kept awake if requested and permitted, and no longer than the run."""

import os
from pathlib import Path

import pytest

from pgperf.runner.cpu import idle


def holders(device: Path) -> int:
    """How many descriptors of this process are open on the device."""
    links = (os.readlink(entry) for entry in Path("/proc/self/fd").iterdir() if entry.exists())
    return sum(link == str(device) for link in links)


def test_the_device_stays_open_with_a_latency_of_zero(tmp_path: Path) -> None:
    device = tmp_path / "cpu_dma_latency"
    device.write_bytes(b"")
    with idle.keep_awake("awake", device) as got:
        assert got == idle.IdleState("awake")
        assert device.read_bytes() == bytes(4)
        assert holders(device) == 1
    assert holders(device) == 0


def test_the_device_is_closed_if_the_run_fails(tmp_path: Path) -> None:
    device = tmp_path / "cpu_dma_latency"
    device.write_bytes(b"")
    with pytest.raises(ZeroDivisionError), idle.keep_awake("awake", device):
        raise ZeroDivisionError
    assert holders(device) == 0


def test_system_leaves_the_cpus_alone(tmp_path: Path) -> None:
    device = tmp_path / "cpu_dma_latency"
    device.write_bytes(b"")
    with idle.keep_awake("system", device) as got:
        assert got == idle.IdleState("system")
        assert holders(device) == 0
    assert device.read_bytes() == b""


def test_a_refused_policy_says_why(tmp_path: Path) -> None:
    missing = tmp_path / "none"
    with idle.keep_awake("awake", missing) as got:
        assert got == idle.IdleState("system", f"awake not possible: this system has no {missing}")
    assert not missing.exists()
    with idle.keep_awake("awake", tmp_path) as got:
        assert got == idle.IdleState(
            "system", f"awake not possible: {tmp_path} may not be written by this process"
        )
