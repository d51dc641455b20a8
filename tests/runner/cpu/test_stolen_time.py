"""Whether CPU times contain stolen time, on made-up machines and on this one."""

import gzip
import platform
from pathlib import Path

import pytest

from pgperf.runner.cpu.stolen_time import in_cpu_times

WITH = "CONFIG_PARAVIRT=y\nCONFIG_PARAVIRT_TIME_ACCOUNTING=y\n"
WITHOUT = "CONFIG_PARAVIRT=y\n# CONFIG_PARAVIRT_TIME_ACCOUNTING is not set\n"
RELEASE = "6.1.0-9-amd64"


def guest(root: Path, config: str = WITH, stolen: int = 40, line: str = "quiet ro") -> Path:
    (root / "proc").mkdir()
    (root / "proc/config.gz").write_bytes(gzip.compress(config.encode()))
    (root / "proc/cmdline").write_text(f"{line}\n")
    (root / "proc/stat").write_text(f"cpu  100 0 50 800 5 0 2 {stolen} 0 0\n")
    return root


def found(root: Path, machine: str = "x86_64") -> bool | None:
    return in_cpu_times(root, machine, RELEASE)


def test_a_kernel_with_the_option_takes_stolen_time_off(tmp_path: Path) -> None:
    assert found(guest(tmp_path)) is False


def test_a_kernel_without_it_counts_it_for_the_task(tmp_path: Path) -> None:
    assert found(guest(tmp_path, WITHOUT)) is True


def test_so_does_one_whose_command_line_switches_it_off(tmp_path: Path) -> None:
    assert found(guest(tmp_path, line="ro no-steal-acc")) is True


def test_without_stolen_time_so_far_there_may_be_no_clock_of_it(tmp_path: Path) -> None:
    assert found(guest(tmp_path, stolen=0)) is None


@pytest.mark.parametrize("place", [f"boot/config-{RELEASE}", f"lib/modules/{RELEASE}/config"])
def test_the_configuration_may_be_a_file_of_the_release(tmp_path: Path, place: str) -> None:
    root = guest(tmp_path)
    (root / "proc/config.gz").unlink()
    assert found(root) is None
    (root / place).parent.mkdir(parents=True)
    (root / place).write_text(WITHOUT)
    assert found(root) is True


def test_what_cannot_be_read_is_not_known(tmp_path: Path) -> None:
    root = guest(tmp_path)
    assert found(root, "s390x") is None
    (root / "proc/cmdline").unlink()
    assert found(root) is None
    (root / "proc/config.gz").write_bytes(b"\x1f\x8b truncated")
    assert found(root) is None


def test_the_kernel_is_that_of_this_machine_unless_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = guest(tmp_path)
    (root / "proc/config.gz").unlink()
    (root / "boot").mkdir()
    (root / "boot/config-7.0-here").write_text(WITHOUT)
    monkeypatch.setattr(platform, "release", lambda: "7.0-here")
    for machine, known in (("x86_64", True), ("s390x", None)):
        monkeypatch.setattr(platform, "machine", lambda machine=machine: machine)
        assert in_cpu_times(root) is known
