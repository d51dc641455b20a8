"""An interval as top shows it: parsing and subtraction on made-up trees, and one test on this
machine.
"""

import os
import pwd
from dataclasses import replace
from pathlib import Path

import pytest

from pgperf.runner.cpu import top

TICK_S = 1 / os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
LINE = (
    "{pid} ({name}) S 1 1 1 0 -1 4194304 9 0 0 0 {user} {system} 0 0 20 0 1 0 {born} 1000000 {pages} 184467\n"
)


def machine(proc: Path, host: str, processes: dict[int, tuple[str, int, int, int]]) -> Path:
    """A /proc with that first line of stat, and (name, user ticks, system ticks, birth) per pid; 10
    pages each.
    """
    proc.mkdir()
    (proc / "stat").write_text(f"cpu  {host} 77 0\ncpu0 {host} 77 0\n")
    (proc / "loadavg").write_text("1.50 2.25 0.75 3/150 4711\n")
    (proc / "self").mkdir()  # not a process of its own
    for pid, (name, user, system, born) in processes.items():
        (proc / str(pid)).mkdir()
        line = LINE.format(pid=pid, name=name, user=user, system=system, born=born, pages=10)
        (proc / str(pid) / "stat").write_text(line)
    return proc


def stretch(tmp_path: Path, before: dict[int, tuple[str, int, int, int]], after: dict) -> dict:
    roles = {"clients": [30, 20], "pooler": [10]}
    first = top.TopSnapshot.take(roles, machine(tmp_path / "before", "100 10 50 800 5 1 2 3", before))
    second = top.TopSnapshot.take(roles, machine(tmp_path / "after", "150 10 70 920 5 1 2 13", after))
    return top.between(
        first, top.TopSnapshot(first.moment_s + 2.0, second.host, second.load, second.processes)
    )


def test_the_host_line_has_percentages_of_the_ticks_in_between(tmp_path: Path) -> None:
    found = stretch(tmp_path, {}, {})
    assert found["seconds"] == 2.0
    assert found["host"] == {
        "us": 25.0, "ni": 0.0, "sy": 10.0, "id": 60.0, "wa": 0.0, "hi": 0.0, "si": 0.0, "st": 5.0,
        "load1": 1.5, "load5": 2.25, "load15": 0.75,
    }  # fmt: skip


def test_a_process_has_its_share_of_one_cpu(tmp_path: Path) -> None:
    before = {10: ("pgbouncer", 5, 5, 1), 20: ("python", 0, 0, 2), 30: ("a b) c", 100, 0, 3)}
    after = {10: ("pgbouncer", 5, 5, 1), 20: ("python", 0, 50, 2), 30: ("a b) c", 300, 0, 3)}
    rows = stretch(tmp_path, before, after)["processes"]
    assert [(row["role"], row["pid"], row["name"]) for row in rows] == [
        ("clients", 30, "a b) c"),
        ("clients", 20, "python"),
        ("pooler", 10, "pgbouncer"),
    ]
    assert [row["cpu_percent"] for row in rows] == pytest.approx([100 * TICK_S * 100, 50 * TICK_S * 50, 0])
    assert [row["cpu_s"] for row in rows] == pytest.approx([300 * TICK_S, 50 * TICK_S, 10 * TICK_S])
    assert {row["rss_bytes"] for row in rows} == {10 * PAGE}


def test_only_the_busiest_other_processes_are_shown(tmp_path: Path) -> None:
    pids = range(40, 50)
    before = dict.fromkeys(pids, ("noise", 0, 0, 1)) | {51: ("sleeper", 7, 7, 1)}
    after = {pid: ("noise", pid, 0, 1) for pid in pids} | {51: ("sleeper", 7, 7, 1)}
    rows = stretch(tmp_path, before, after)["processes"]
    assert [(row["role"], row["pid"]) for row in rows] == [("other", pid) for pid in (49, 48, 47, 46, 45)]


def test_others_and_the_hypervisor_take_cpus(tmp_path: Path) -> None:
    """5 % of four CPUs stolen; of 100 ticks in 2 s each, only the processes without a role count."""
    used = {
        10: ("pgbouncer", 0, 100, 1),
        20: ("python", 0, 100, 2),
        40: ("x", 0, 100, 4),
        50: ("y", 0, 100, 5),
    }
    idle = {pid: (name, 0, 0, start) for pid, (name, _system, _user, start) in used.items()}
    shown = stretch(tmp_path, idle, used)
    assert top.taken_cpus(shown, 4) == pytest.approx(4 * 0.05 + 2 * 50 * TICK_S)


def test_what_cannot_be_read_takes_nothing(tmp_path: Path) -> None:
    nothing = top.TopSnapshot.take({}, tmp_path)
    assert top.taken_cpus(top.between(nothing, nothing), 2) == 0


def test_a_reused_pid_has_no_row(tmp_path: Path) -> None:
    before = {20: ("python", 10, 0, 2), 30: ("python", 10, 0, 3)}
    after = {20: ("python", 90, 0, 8), 10: ("pgbouncer", 1, 0, 9)}
    assert stretch(tmp_path, before, after)["processes"] == []


def test_unreadable_values_are_unknown(tmp_path: Path) -> None:
    nothing = top.TopSnapshot.take({"clients": [1]}, tmp_path)
    found = top.between(nothing, nothing)
    assert set(found["host"].values()) == {None}
    assert found["processes"] == []


def test_this_process_on_this_machine() -> None:
    roles = {"clients": [os.getpid()]}
    before = after = top.TopSnapshot.take(roles)
    # the kernel adds up in ticks: until one has reached this process and the host's line
    while (
        top.percent(before.host, after.host)["us"] is None
        or after.processes[os.getpid()].cpu_s == before.processes[os.getpid()].cpu_s
    ):
        after = top.TopSnapshot.take(roles)
    found = top.between(before, after)
    own = found["processes"][0]
    assert (own["role"], own["pid"]) == ("clients", os.getpid())
    assert own["cpu_percent"] > 0
    assert own["rss_bytes"] > 1 << 20
    assert own["user"] == pwd.getpwuid(os.geteuid()).pw_name

    assert sum(
        found["host"][name] for name in ("us", "ni", "sy", "id", "wa", "hi", "si", "st")
    ) == pytest.approx(100)


def test_a_user_without_a_name_is_a_number(tmp_path: Path) -> None:
    process = {20: ("python", 0, 0, 2)}
    proc = machine(tmp_path / "proc", "1 2 3 4 5 6 7 8", process)
    unknown = next(
        uid for uid in range(60_000, 65_000) if uid not in {each.pw_uid for each in pwd.getpwall()}
    )
    seen = top.TopSnapshot.take({"clients": [20]}, proc)
    nameless = replace(seen, processes={20: replace(seen.processes[20], uid=unknown)})
    assert top.between(seen, nameless)["processes"][0]["user"] == str(unknown)
