"""Present and advised settings side by side, and the statements to copy."""

import re
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgperf.tuning import sizes
from pgperf.tuning.advice import Finding, compared, statements
from pgperf.tuning.records import PROFILES, Server
from tests.tuning.test_pgtune import servers

GB = 1 << 20


def finding(present: str | None, advised: str, *, restart: bool = False, name: str = "work_mem") -> Finding:
    return Finding(name, present, advised, "reason", restart)


@pytest.mark.parametrize(
    ("present", "advised", "agrees"),
    [
        ("1GB", "1GB", True),
        ("1024MB", "1GB", True),
        ("1023MB", "1GB", False),
        ("7680kB", "7681kB", True),  # the server rounds to blocks of 8 kB
        ("7672kB", "7680kB", False),
        ("0.90", "0.9", True),
        ("4", "1.1", False),
        ("off", "off", True),
        ("on", "off", False),
        ("-1", "2GB", False),
        ("pglz", "lz4", False),
        (None, "lz4", None),
    ],
)
def test_values_agree_however_they_are_spelled(
    present: str | None, advised: str, agrees: bool | None
) -> None:
    assert finding(present, advised).agrees is agrees


@given(servers())
def test_a_tuned_server_needs_no_statement(server: Server) -> None:
    advised = {each.name: each.advised for each in compared(server, {})}
    findings = compared(server, advised)
    assert all(each.agrees for each in findings)
    assert statements(findings) == []


def test_statements_are_those_of_settings_that_differ_or_are_unknown() -> None:
    found = [
        finding("1GB", "4GB", restart=True, name="shared_buffers"),
        finding("4MB", "4MB"),
        finding(None, "0.9", name="checkpoint_completion_target"),
    ]
    assert statements(found) == [
        "ALTER SYSTEM SET checkpoint_completion_target = '0.9';",
        "SELECT pg_reload_conf();",
        "ALTER SYSTEM SET shared_buffers = '4GB';  -- needs a restart",
    ]


def test_no_statement_sets_what_goes_before_the_configuration() -> None:
    found = [
        replace(finding("128MB", "4GB", restart=True, name="shared_buffers"), source="command line"),
        finding("4MB", "8MB"),
    ]
    assert statements(found) == ["ALTER SYSTEM SET work_mem = '8MB';", "SELECT pg_reload_conf();"]


def test_without_a_setting_to_reload_there_is_no_reload() -> None:
    assert statements([finding("1GB", "4GB", restart=True)]) == [
        "ALTER SYSTEM SET work_mem = '4GB';  -- needs a restart"
    ]


DESKTOP = Server(memory_kb=16 * GB, version=18.0, profile="desktop")


def test_a_statement_names_what_keeps_a_server_from_starting() -> None:
    lines = statements(compared(DESKTOP, {}))
    assert {
        "ALTER SYSTEM SET io_method = 'io_uring';  -- needs a restart; the server does not start where the"
        " kernel forbids io_uring",
        "ALTER SYSTEM SET wal_level = 'minimal';  -- needs a restart; the server does not start while it has"
        " a replication slot or max_wal_senders is above 0",
    } <= set(lines)


@pytest.mark.parametrize(
    ("present", "sources", "replicates", "reason"),
    [
        ({"archive_mode": "on"}, {}, False, "archives its WAL"),
        ({"archive_mode": "always"}, {}, False, "archives its WAL"),
        ({"wal_level": "logical"}, {}, False, "replication is in use"),
        ({}, {}, True, "replication is in use"),
        ({"summarize_wal": "on"}, {}, False, "summarize_wal is on"),
        ({"max_wal_senders": "10"}, {"max_wal_senders": "command line"}, False, "command line"),
    ],
)
def test_a_server_that_needs_its_wal_keeps_it(
    present: dict[str, str | None], sources: dict[str, str], replicates: bool, reason: str
) -> None:
    """It would not start with minimal WAL, or its standbys would have none."""
    present = {"wal_level": "replica", "max_wal_senders": "10", **present}
    found = compared(DESKTOP, present, sources, replicates=replicates)
    left_out = {each.name: each.left_out for each in found if each.left_out}
    assert left_out.keys() == {"wal_level", "max_wal_senders"}
    assert all(reason in why for why in left_out.values())
    assert not any(name in line for line in statements(found) for name in left_out)


@pytest.mark.parametrize("archive_mode", [{}, {"archive_mode": "off"}])  # a default is not stored
def test_other_servers_write_minimal_wal(archive_mode: dict[str, str | None]) -> None:
    found = compared(DESKTOP, {"wal_level": "replica", "max_wal_senders": "10", **archive_mode})
    assert sum("wal_level = " in line or "max_wal_senders = " in line for line in statements(found)) == 2


@given(servers(version=st.sampled_from([9.0, 9.4]) | st.sampled_from([9.6, 18.0])))
def test_no_work_mem_is_advised_that_the_server_refuses(server: Server) -> None:
    (advised,) = [each.advised for each in compared(server, {}) if each.name == "work_mem"] or ["64kB"]
    assert (sizes.kb(advised) or 0) >= 64


def test_work_mem_of_many_connections_is_the_least_that_the_server_takes() -> None:
    server = Server(memory_kb=256 << 10, version=9.4, profile="oltp", connections=10_000)
    (advised,) = [each.advised for each in compared(server, {}) if each.name == "work_mem"]
    assert advised == "64kB"


@given(servers(), st.dictionaries(st.sampled_from(["work_mem", "jit"]), st.none() | st.text(max_size=9)))
def test_no_present_value_reaches_a_statement(server: Server, present: dict[str, str | None]) -> None:
    for each in statements(compared(server, present)):
        assert re.fullmatch(
            r"ALTER SYSTEM SET [a-z_]+ = '[a-z0-9._]+[kMGT]?B?';(  -- needs a restart(; [a-z0-9_ ]+)?)?"
            r"|SELECT pg_reload_conf\(\);",
            each,
        )


@pytest.fixture(scope="module")
def facts(superuser_login: dict[str, Any]) -> dict[str, Any]:
    with psycopg.connect(**superuser_login, dbname="postgres") as connection:
        rows = connection.execute("SELECT name, context, enumvals FROM pg_settings").fetchall()
        (data,) = connection.execute("SHOW data_directory").fetchone() or ("",)
        (version,) = connection.execute("SHOW server_version_num").fetchone() or ("",)
    pid = int((Path(data) / "postmaster.pid").read_text().split()[0])
    return {
        "contexts": {name: context for name, context, _values in rows},
        "enums": {name: values for name, _context, values in rows},
        "data": data,
        "program": Path(f"/proc/{pid}/exe").resolve(),
        "version": float(int(version) // 10000),
    }


class TestOnAServer:
    """PostgreSQL itself says which settings need a restart and which values it accepts."""

    def test_restarts_are_those_of_the_server(self, facts: dict[str, Any]) -> None:
        for profile in PROFILES:
            server = Server(memory_kb=256 * GB, cpus=32, profile=profile, version=facts["version"])
            found = {each.name: each.restart for each in compared(server, {})}
            assert found == {name: facts["contexts"][name] == "postmaster" for name in found}

    @pytest.mark.parametrize("profile", PROFILES)
    @pytest.mark.parametrize("memory_kb", [64 << 10, 777_777, 16 * GB, 16 << 30])
    def test_the_server_accepts_every_value(
        self, facts: dict[str, Any], profile: str, memory_kb: int
    ) -> None:
        server = Server(
            memory_kb=memory_kb, cpus=1024, profile=profile, storage="nvme", version=facts["version"]
        )
        chosen = {each.name: each.advised for each in compared(server, {})}
        options = [
            word
            for name, value in chosen.items()
            if not (allowed := facts["enums"][name]) or value in allowed
            for word in ("-c", f"{name}={value}")
        ]
        asked = [facts["program"], "-C", "work_mem", "-D", facts["data"], *options]
        answer = subprocess.run(list(map(str, asked)), capture_output=True, text=True, timeout=60)
        assert answer.returncode == 0, answer.stderr
        assert "FATAL" not in answer.stderr


@pytest.mark.parametrize("version", [9.4, 18.0])
def test_statements_are_of_alter_system(version: float) -> None:
    lines = statements(compared(Server(memory_kb=GB, version=version), {}))
    assert all(line.startswith(("ALTER SYSTEM SET ", "SELECT pg_reload_conf()")) for line in lines)


def test_a_server_before_9_4_has_lines_of_its_file() -> None:
    lines = statements(compared(Server(memory_kb=GB, version=9.3), {}))
    assert any(re.fullmatch("work_mem = '[0-9]+[kM]B'", line) for line in lines)
    assert any(re.fullmatch("shared_buffers = '[0-9]+MB'  # needs a restart", line) for line in lines)
    assert not any(";" in line for line in lines)
