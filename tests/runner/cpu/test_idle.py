"""Processors kept awake: while it is wished, possible, and no longer than the run."""

import os
from pathlib import Path

import pytest

from pgperf.runner.cpu import idle


def holders(device: Path) -> int:
    """How many descriptors of this process are open on the device."""
    links = (os.readlink(entry) for entry in Path("/proc/self/fd").iterdir() if entry.exists())
    return sum(link == str(device) for link in links)


def test_no_latency_is_asked_for_and_the_wish_is_held_open(tmp_path: Path) -> None:
    device = tmp_path / "cpu_dma_latency"
    device.write_bytes(b"")
    with idle.held("awake", device) as got:
        assert got == idle.Idle("awake")
        assert device.read_bytes() == bytes(4)
        assert holders(device) == 1
    assert holders(device) == 0


def test_the_wish_ends_with_a_run_that_fails(tmp_path: Path) -> None:
    device = tmp_path / "cpu_dma_latency"
    device.write_bytes(b"")
    with pytest.raises(ZeroDivisionError), idle.held("awake", device):
        raise ZeroDivisionError
    assert holders(device) == 0


def test_left_alone_when_that_is_the_wish(tmp_path: Path) -> None:
    device = tmp_path / "cpu_dma_latency"
    device.write_bytes(b"")
    with idle.held("system", device) as got:
        assert got == idle.Idle("system")
        assert holders(device) == 0
    assert device.read_bytes() == b""


def test_a_wish_that_cannot_be_granted_says_why(tmp_path: Path) -> None:
    missing = tmp_path / "none"
    with idle.held("awake", missing) as got:
        assert got == idle.Idle("system", f"awake not possible: this system has no {missing}")
    assert not missing.exists()
    with idle.held("awake", tmp_path) as got:
        assert got == idle.Idle(
            "system", f"awake not possible: {tmp_path} may not be written by this process"
        )
