"""Whether the CPU times of tasks contain time that the hypervisor stole.

A Linux guest takes stolen time off the scheduler's account where its kernel was built to do so, its
command line does not say otherwise, and its hypervisor gives it a clock of stolen time.
"""

import gzip
import platform
from pathlib import Path

from pgperf.runner.cpu.top import HOST, host_ticks

_OPTION = "CONFIG_PARAVIRT_TIME_ACCOUNTING"
_SWITCHED_OFF = "no-steal-acc"
#: Others have other options for it.
_ARCHITECTURES = ("x86_64", "aarch64")
_STEAL = HOST.index("st")


def in_cpu_times(root: Path = Path("/"), machine: str = "", release: str = "") -> bool | None:
    """None where it cannot be told: the kernel's configuration is not readable here, or no time has
    been stolen yet, so that the hypervisor may give no clock of it.

    `machine` and `release` of the kernel, "" for this one's; files are below `root`.
    """
    if (machine or platform.machine()) not in _ARCHITECTURES:
        return None
    built, words = _built_with_it(root, release or platform.release()), _command_line(root)
    if built is None or words is None:
        return None
    if not built or _SWITCHED_OFF in words:
        return True
    ticks = host_ticks(root / "proc")
    return False if ticks and ticks[_STEAL] else None


def _built_with_it(root: Path, release: str) -> bool | None:
    """By the first configuration of the kernel that is readable."""
    found = _compressed(root / "proc/config.gz")
    for path in (root / f"boot/config-{release}", root / f"lib/modules/{release}/config"):
        found = found or _text(path)
    return None if not found else f"{_OPTION}=y" in found.splitlines()


def _command_line(root: Path) -> list[str] | None:
    text = _text(root / "proc/cmdline")
    return None if text is None else text.split()


def _text(path: Path) -> str | None:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return None


def _compressed(path: Path) -> str | None:
    try:
        return gzip.decompress(path.read_bytes()).decode(errors="replace")
    except (OSError, EOFError):
        return None
