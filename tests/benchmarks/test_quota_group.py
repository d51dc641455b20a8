"""Control groups with a quota: times, counters and files, on a made-up group."""

from pathlib import Path

import pytest

from benchmarks import quota_group
from benchmarks.quota_group import NoQuota, QuotaGroup, Throttled, throttled_of, times_us


@pytest.mark.parametrize(
    ("cpus", "times"), [(0.25, (2500, 10_000)), (0.01, (1000, 100_000)), (0.0001, (1000, 1_000_000))]
)
def test_a_small_quota_has_a_long_period(cpus: float, times: tuple[int, int]) -> None:
    assert times_us(cpus) == times


def test_both_versions_count_throttling() -> None:
    first = throttled_of("nr_periods 9\nnr_throttled 3\nthrottled_time 1500000000\n")
    second = throttled_of("usage_usec 5\nnr_throttled 4\nthrottled_usec 2000000\n")
    assert first == Throttled(3, 1.5)
    assert second.since(first) == Throttled(1, 0.5)


def test_a_quota_of_version_1_is_set_and_lifted(tmp_path: Path) -> None:
    group = QuotaGroup(tmp_path)
    group.allow(0.25)
    assert (tmp_path / "cpu.cfs_quota_us").read_text() == "2500"
    assert (tmp_path / "cpu.cfs_period_us").read_text() == "10000"
    group.allow(None)
    assert (tmp_path / "cpu.cfs_quota_us").read_text() == "-1"


def test_a_quota_of_version_2_is_set_and_lifted(tmp_path: Path) -> None:
    (tmp_path / "cpu.max").write_text("max 100000")
    group = QuotaGroup(tmp_path)
    group.allow(0.25)
    assert (tmp_path / "cpu.max").read_text() == "2500 10000"
    group.allow(None)
    assert (tmp_path / "cpu.max").read_text() == "max 10000"


def test_why_there_is_no_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quota_group.cgroups, "groups_of", lambda pid, controller: iter(()))
    with pytest.raises(NoQuota, match="no control groups are mounted"):
        quota_group._made("x")
    monkeypatch.setattr(quota_group.cgroups, "groups_of", lambda pid, controller: iter((tmp_path,)))
    with pytest.raises(NoQuota, match="have no controller `cpu`"):
        quota_group._made("x")
    assert not (tmp_path / "x").exists()
