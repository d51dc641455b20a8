"""The first pgtune, against the settings that Stein Magnus Jodal published in 2011."""

import pytest

from pgperf.tuning.advice import advise
from pgperf.tuning.records import PROFILES, Server

MB = 1 << 10
PUBLISHED = {
    "maintenance_work_mem": "60MB",
    "checkpoint_completion_target": "0.7",
    "effective_cache_size": "704MB",
    "work_mem": "5MB",
    "wal_buffers": "4MB",
    "checkpoint_segments": "8",
    "shared_buffers": "240MB",
    "max_connections": "200",
}


def values(memory_mb: int, profile: str = "web", connections: int | None = None) -> dict[str, str]:
    server = Server(memory_kb=memory_mb * MB, profile=profile, connections=connections, version=8.4)
    return {each.name: each.value for each in advise(server)}


@pytest.mark.parametrize("memory_mb", range(1000, 1024))
def test_the_published_example(memory_mb: int) -> None:
    """The author writes 1,024 MB; a machine of 1 GB reports a little less."""
    assert values(memory_mb) == PUBLISHED


@pytest.mark.parametrize(
    ("memory_mb", "changed"),
    [
        (999, {"work_mem": "4608kB"}),
        (1024, {"maintenance_work_mem": "64MB", "effective_cache_size": "768MB", "shared_buffers": "256MB"}),
    ],
)
def test_the_figures_beside_that_range(memory_mb: int, changed: dict[str, str]) -> None:
    assert values(memory_mb) == {**PUBLISHED, **changed}


def test_without_enough_memory_sizes_stay_as_they_are() -> None:
    assert set(values(255)) == {
        "max_connections", "checkpoint_segments", "checkpoint_completion_target", "wal_buffers"
    }  # fmt: skip
    assert "shared_buffers" in values(256)


@pytest.mark.parametrize("profile", PROFILES)
def test_a_large_server_keeps_maintenance_at_1_gb(profile: str) -> None:
    assert values(1 << 20, profile)["maintenance_work_mem"] == "1GB"


def test_profiles_share_the_memory_in_their_own_way() -> None:
    desktop, warehouse = values(4096, "desktop"), values(4096, "dw")
    assert (desktop["shared_buffers"], desktop["effective_cache_size"]) == ("256MB", "1GB")
    assert (warehouse["checkpoint_segments"], warehouse["wal_buffers"]) == ("64", "32MB")
    assert (warehouse["work_mem"], desktop["work_mem"]) == ("96MB", "128MB")


def test_connections_asked_for_share_the_memory() -> None:
    assert values(1010, connections=100)["work_mem"] == "10MB"
    assert values(1010, connections=100)["max_connections"] == "100"
