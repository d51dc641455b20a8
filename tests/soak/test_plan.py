"""Campaigns: a seed determines the cases, and the checks detect each violated promise."""

import os
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from soak import __main__ as campaigns
from soak import fault_cases, faults, fuzz_python, kills, load_host_cases, load_hosts, outage_cases, outages
from soak.fault_cases import FaultResult
from soak.kill_case import REASONS, Observation, violations

ALL_BLOCKS = [(f"variant {n}", block) for n in range(6) for block in range(3)]
FINE = Observation(
    victim="client", status="failed", error="psycopg · tcp: ended unexpectedly (signal SIGKILL)", moment="running",
    terminal_s=0.4, attempt=1, runs=1, before=ALL_BLOCKS[:6], after=ALL_BLOCKS[:6], orphans=0, backends=0,
    next_status="done",
)  # fmt: skip


def test_the_same_seed_and_number_give_the_same_case() -> None:
    assert kills.case(7, 12) == kills.case(7, 12)
    assert kills.case(7, 12) != kills.case(8, 12)


def test_victims_take_turns() -> None:
    assert Counter(kills.case(1, number)["victim"] for number in range(200)) == dict.fromkeys(
        kills.VICTIMS, 25
    )


def test_an_observation_as_promised_has_no_violations() -> None:
    assert violations(FINE) == []
    assert violations(replace(FINE, status="done", error="", after=ALL_BLOCKS)) == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"terminal_s": 60.5}, "not terminal"),
        ({"terminal_s": -1.0, "status": "running"}, "not terminal"),
        ({"error": "connection refused"}, "does not fit"),
        ({"status": "lost", "error": "No sign of life from celery@h"}, "does not fit"),
        ({"victim": "Redis"}, "does not fit"),
        ({"victim": "PgBouncer", "error": "psycopg · tcp: server closed the connection"}, "does not fit"),
        ({"status": "done", "after": ALL_BLOCKS[:12]}, "done with 12 of 18 blocks"),
        ({"after": ALL_BLOCKS[:5]}, "1 stored blocks are gone"),
        ({"attempt": 2}, "not performed exactly once"),
        ({"attempt": 0}, "not performed exactly once"),
        ({"runs": 2}, "not performed exactly once"),
        ({"orphans": 1}, "left over: 1 clients"),
        ({"backends": 2}, "2 backends"),
        ({"next_status": "queued"}, "the next run is queued"),
        ({"extra": ["there was no backend to kill"]}, "no backend to kill"),
    ],
)
def test_each_broken_promise_is_a_violation(change: dict[str, object], words: str) -> None:
    assert words in "; ".join(violations(replace(FINE, **change)))  # type: ignore[arg-type]


def test_kills_of_broker_and_web_may_not_fail_a_run() -> None:
    assert set(kills.VICTIMS) - set(REASONS) == {"Redis", "web"}


def test_every_kind_of_fault_has_a_case() -> None:
    assert list(faults.KINDS) == list(fault_cases.KINDS)
    assert list(outages.KINDS) == list(outage_cases.KINDS)
    assert list(load_hosts.KINDS) == list(load_host_cases.KINDS)
    assert sum(load_hosts.KINDS.values()) == 50


def test_without_root_the_outages_that_need_it_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert set(outages._possible(list(outages.KINDS))) == set(outages.KINDS) - set(outages.NEED_ROOT)


def test_without_a_network_of_its_own_no_load_host_is_cut_off(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(load_hosts, "refusal", lambda: "making network namespaces takes root")
    kinds = load_hosts._possible(list(load_hosts.KINDS))
    assert set(kinds) == set(load_hosts.KINDS) - set(load_hosts.NEED_NETWORK)
    assert "takes root): network cut for 10 s, network cut for 120 s" in capsys.readouterr().out
    monkeypatch.setattr(load_hosts, "refusal", lambda: "")
    assert load_hosts._possible(list(load_hosts.KINDS)) == list(load_hosts.KINDS)


def test_a_fault_result_lists_only_what_does_not_hold() -> None:
    result = FaultResult("")
    result.require(True, "fine")
    result.require(False, "not fine")
    assert result.wrong == ["not fine"]


def test_the_table_has_a_line_for_each_victim() -> None:
    result = {
        **kills.case(1, 2), "status": "failed", "terminal_s": 0.4, "orphans": 0, "backends": 0, "blocks_lost": 0,
        "again": 0, "next_done": 1, "wrong": [], "moment": "", "error": "", "stored": 1,
    }  # fmt: skip
    assert "| client | 1 | 0, 1, 0, 0 | 1 failed | 0.4 | 0.4 | 0 | 0 | 0 | 0 | 1/1 |" in kills.table([result])


@pytest.mark.parametrize("campaign", campaigns.CAMPAIGNS.values(), ids=list(campaigns.CAMPAIGNS))
def test_the_program_of_every_campaign_exists(campaign: campaigns.Campaign) -> None:
    assert Path(campaigns.ROOT, *campaign.program.split(".")).with_suffix(".py").exists()


def test_every_campaign_has_one_place() -> None:
    planned = [name for stage in campaigns.STAGES for track in stage for name in track]
    assert sorted(planned) == sorted(campaigns.CAMPAIGNS)


def test_tracks_run_side_by_side_and_stages_after_another(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The two of the first stage wait for each other; the last one finds what both left."""
    os.mkfifo(tmp_path / "fifo")
    programs = {
        "kills": "open('fifo', 'w').close(); print('told'); open('kills', 'w')",
        "faults": "open('fifo').close(); print('heard'); open('faults', 'w')",
        "aa": "open('kills'), open('faults'); raise SystemExit('does not hold')",
    }
    monkeypatch.setattr(campaigns, "STAGES", ((("kills",), ("faults", "outages")), (("aa",),)))
    monkeypatch.setattr(campaigns, "ROOT", tmp_path)
    monkeypatch.setattr(campaigns, "_argv", lambda name, _options: [sys.executable, "-c", programs[name]])
    monkeypatch.setattr(sys, "argv", ["soak", f"--only={','.join(programs)}"])
    assert campaigns.main() == 1
    lines = [line.split() for line in capfd.readouterr().out.splitlines()]
    assert ["kills", "told"] in lines
    assert ["faults", "heard"] in lines
    assert ["aa", "does", "not", "hold"] in lines
    assert [(name, holds) for name, _minutes, holds in lines[-3:]] == [
        ("kills", "yes"), ("faults", "yes"), ("aa", "NO"),
    ]  # fmt: skip


def test_a_run_that_could_not_store_its_end_may_change_from_lost_to_failed() -> None:
    assert outage_cases._ends_from("lost") == ("lost", "failed")
    assert outage_cases._ends_from("failed") == ("failed",)


def test_the_areas_of_all_fuzzing_processes_are_counted_together() -> None:
    first = {"wire": {"inputs": 3, "cpu_s": 0.5, "mb": 1.0}, "forms": {"inputs": 2, "cpu_s": 1.0, "mb": 9.0}}
    second = {"wire": {"inputs": 4, "cpu_s": 0.2, "mb": 7.0}}
    assert fuzz_python._together([first, second, {}]) == {
        "wire": {"inputs": 7, "cpu_s": 0.5, "mb": 7.0},
        "forms": {"inputs": 2, "cpu_s": 1.0, "mb": 9.0},
    }
