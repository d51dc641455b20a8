"""pgtune of 2026: its published examples, and laws that hold for every server."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgperf.core.exceptions import InvalidDefinition
from pgperf.tuning import records, sizes
from pgperf.tuning.advice import advise
from pgperf.tuning.records import Server

GB = 1 << 20
SIZES = ("shared_buffers", "effective_cache_size", "maintenance_work_mem", "work_mem", "wal_buffers")


def values(gb: float = 16, **fields: Any) -> dict[str, str]:
    fields = {"version": 18.0, "cpus": 8, **fields}
    return {each.name: each.value for each in advise(Server(memory_kb=round(gb * GB), **fields))}


def servers(**fixed: Any) -> st.SearchStrategy[Server]:
    fields = {
        "memory_kb": st.integers(*records.MEMORY_KB),
        "version": st.sampled_from([9.5, 9.6, 10.0, 11.0, 12.0, 14.0, 15.0, 17.0, 18.0, 19.0]),
        "cpus": st.none() | st.integers(*records.CPUS),
        "profile": st.sampled_from(records.PROFILES),
        "connections": st.none() | st.integers(*records.CONNECTIONS),
        "storage": st.sampled_from(records.STORAGE),
        "data_size": st.sampled_from(records.DATA_SIZES),
    }
    return st.builds(Server, **{**fields, **fixed})


def kb(server: Server, name: str) -> int:
    found = {each.name: each.value for each in advise(server)}[name]
    size = sizes.kb(found)
    assert size is not None
    return size


def test_a_web_server_of_16_gb() -> None:
    assert values() == {
        "max_connections": "200",
        "shared_buffers": "4GB",
        "effective_cache_size": "12GB",
        "maintenance_work_mem": "1GB",
        "huge_pages": "try",
        "checkpoint_completion_target": "0.9",
        "wal_buffers": "16MB",
        "min_wal_size": "1GB",
        "max_wal_size": "4GB",
        "wal_compression": "lz4",
        "default_statistics_target": "100",
        "random_page_cost": "1.1",
        "jit": "off",
        "work_mem": "20164kB",
        "max_worker_processes": "8",
        "max_parallel_workers_per_gather": "4",
        "max_parallel_workers": "8",
        "max_parallel_maintenance_workers": "4",
        "effective_io_concurrency": "200",
        "io_method": "io_uring",
    }


@pytest.mark.parametrize(
    ("profile", "connections", "wal", "statistics", "cost", "jit"),
    [
        ("web", "200", ("1GB", "4GB"), "100", "1.1", "off"),
        ("oltp", "300", ("2GB", "8GB"), "100", "1.1", "off"),
        ("dw", "40", ("4GB", "16GB"), "500", "4", None),
        ("mixed", "100", ("1GB", "4GB"), "100", "1.1", "off"),
        ("desktop", "20", ("100MB", "2GB"), "100", "1.1", None),
    ],
)
def test_profiles(
    profile: str, connections: str, wal: tuple[str, str], statistics: str, cost: str, jit: str | None
) -> None:
    found = values(profile=profile)
    assert found["max_connections"] == connections
    assert (found["min_wal_size"], found["max_wal_size"]) == wal
    assert (found["default_statistics_target"], found["random_page_cost"]) == (statistics, cost)
    assert found.get("jit") == jit
    assert ("wal_level" in found) == ("max_wal_senders" in found) == (profile == "desktop")


@pytest.mark.parametrize(
    ("version", "cpus", "profile", "expected"),
    [
        (14.0, 1, "web", (None, None, None, None)),
        (14.0, None, "web", (None, None, None, None)),
        (13.0, 12, "web", ("12", "4", "12", "4")),
        (10.0, 31, "web", ("31", "4", "31", None)),
        (9.6, 12, "web", ("12", "4", None, None)),
        (9.5, 12, "web", ("12", None, None, None)),
        (12.0, 31, "dw", ("31", "16", "31", "4")),
    ],
)
def test_parallel_workers(
    version: float, cpus: int | None, profile: str, expected: tuple[str | None, ...]
) -> None:
    found = values(version=version, cpus=cpus, profile=profile)
    names = (
        "max_worker_processes", "max_parallel_workers_per_gather", "max_parallel_workers",
        "max_parallel_maintenance_workers",
    )  # fmt: skip
    assert tuple(found.get(name) for name in names) == expected


@pytest.mark.parametrize(
    ("storage", "data", "profile", "cost", "concurrent"),
    [
        ("hdd", "similar", "web", "4", "2"),
        ("hdd", "fits", "dw", "1.1", "2"),
        ("ssd", "similar", "dw", "4", "200"),
        ("san", "larger", "web", "1.1", "300"),
        ("nvme", "similar", "oltp", "1.1", "1000"),
    ],
)
def test_storage(storage: str, data: str, profile: str, cost: str, concurrent: str) -> None:
    found = values(storage=storage, data_size=data, profile=profile)
    assert (found["random_page_cost"], found["effective_io_concurrency"]) == (cost, concurrent)


@pytest.mark.parametrize(("data", "work_mem"), [("similar", 20164), ("fits", 26213), ("larger", 18147)])
def test_the_size_of_the_database_changes_work_mem(data: str, work_mem: int) -> None:
    assert sizes.kb(values(data_size=data)["work_mem"]) == work_mem


@pytest.mark.parametrize(
    ("fields", "name", "value"),
    [
        ({"gb": 256}, "maintenance_work_mem", "8GB"),
        ({"gb": 256}, "autovacuum_work_mem", "2GB"),
        ({"gb": 4}, "autovacuum_work_mem", None),
        ({"gb": 4}, "huge_pages", "off"),
        ({"gb": 4, "connections": 9999}, "work_mem", "4MB"),
        ({"cpus": 8}, "autovacuum_max_workers", None),
        ({"cpus": 16}, "autovacuum_max_workers", "4"),
        ({"cpus": 32}, "autovacuum_max_workers", "5"),
        ({"cpus": 15}, "io_workers", None),
        ({"cpus": 32}, "io_workers", "8"),
        ({"cpus": 32, "version": 17.0}, "io_workers", None),
        ({"version": 17.0}, "io_method", None),
        ({"version": 14.0}, "wal_compression", "on"),
        ({"version": 11.0}, "jit", None),
        ({"gb": 0.25}, "wal_buffers", "1966kB"),
        ({"gb": 1.9}, "wal_buffers", "16MB"),
    ],
)
def test_limits_and_versions(fields: dict[str, Any], name: str, value: str | None) -> None:
    assert values(**fields).get(name) == value


@given(servers(), servers())
def test_more_memory_never_gives_less(server: Server, other: Server) -> None:
    low, high = sorted([server.memory_kb, other.memory_kb])
    fields = {
        name: getattr(server, name) for name in ("version", "cpus", "profile", "connections", "storage")
    }
    smaller, larger = (
        Server(memory_kb=memory, **fields, data_size=server.data_size) for memory in (low, high)
    )
    assert all(kb(smaller, name) <= kb(larger, name) for name in SIZES)


@given(servers())
def test_no_setting_takes_more_than_the_memory(server: Server) -> None:
    assert all(kb(server, name) <= server.memory_kb for name in SIZES)
    assert kb(server, "shared_buffers") + kb(server, "maintenance_work_mem") <= server.memory_kb / 2


@given(servers())
def test_buffers_and_the_work_of_all_connections_fit_in_memory(server: Server) -> None:
    """Where work_mem is above its floor."""
    work, buffers = kb(server, "work_mem"), kb(server, "shared_buffers")
    connections = int({each.name: each.value for each in advise(server)}["max_connections"])
    assert work == 4096 or buffers + work * connections <= server.memory_kb


@given(servers())
def test_every_setting_appears_once_with_a_reason(server: Server) -> None:
    found = advise(server)
    assert len({each.name for each in found}) == len(found)
    assert all(each.value and each.why and "\n" not in each.why for each in found)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("memory_kb", 1), ("memory_kb", 1 << 50), ("cpus", 0), ("cpus", -1), ("cpus", 10**9), ("connections", 1),
        ("connections", 10**6), ("profile", "Web"), ("profile", ""), ("storage", "tape"), ("data_size", "x" * 999),
    ],
)  # fmt: skip
def test_an_impossible_server_is_refused_by_field(field: str, value: Any) -> None:
    with pytest.raises(InvalidDefinition) as refusal:
        Server(**{"memory_kb": GB, "version": 18.0, field: value})
    assert str(refusal.value).startswith(f"{field.removesuffix('_kb')}: ")
    assert "choose" in str(refusal.value)
    assert len(str(refusal.value)) < 200


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("18.6", 18.0),
        ("18beta1", 18.0),
        ("16.2 (Debian 16.2-1)", 16.0),
        ("9.6.24", 9.6),
        ("", None),
        ("x", None),
    ],
)
def test_versions(text: str, version: float | None) -> None:
    assert records.version_of(text) == version
