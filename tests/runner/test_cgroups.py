"""Control groups of either version, on made-up trees."""

from pathlib import Path

from pgperf.runner.cgroups import group_ns, groups_of, members


def test_a_groups_time_in_either_version(tmp_path: Path) -> None:
    assert group_ns(tmp_path)() is None
    (tmp_path / "cpu.stat").write_text("usage_usec 7\nuser_usec 3\n")
    assert group_ns(tmp_path)() == 7_000
    (tmp_path / "cpuacct.usage").write_text("9\n")
    assert group_ns(tmp_path)() == 9


def test_the_groups_that_count_a_processs_time(tmp_path: Path) -> None:
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "cgroup").write_text(
        "4:memory:/m\n3:cpu,cpuacct:/db\n1:name=systemd:/s\n0::/db.service\n"
    )
    mounts = tmp_path / "mounts"
    mounts.write_text("m /m cgroup rw,memory 0 0\ntwo /2 cgroup2 rw 0 0\none /1 cgroup rw,cpu,cpuacct 0 0\n")
    assert list(groups_of(7, mounts, tmp_path)) == [Path("/1/db"), Path("/2/db.service")]
    assert list(groups_of(8, mounts, tmp_path)) == []
    assert list(groups_of(7, tmp_path / "none", tmp_path)) == []


def test_who_is_in_a_group(tmp_path: Path) -> None:
    (tmp_path / "cgroup.procs").write_text("12\n7\n")
    assert members(tmp_path) == {7, 12}
