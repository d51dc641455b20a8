"""Whether CPU times contain stolen time, in words."""

from typing import Any

import pytest

from pgperf.reports import stolen_time


@pytest.mark.parametrize(
    ("machine", "said"),
    [
        ({"hypervisor": True, "steal_in_cpu_times": False}, "is not part of CPU times here"),
        ({"hypervisor": True, "steal_in_cpu_times": True}, "is part of CPU times here"),
        ({"hypervisor": True, "steal_in_cpu_times": None}, "is not known here"),
        ({"hypervisor": None, "steal_in_cpu_times": None}, "is not known here"),
    ],
)
def test_it_is_said_in_words(machine: dict[str, Any], said: str) -> None:
    assert said in stolen_time.note({"machine": machine})


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"machine": None},
        {"machine": {"hypervisor": True}},
        {"machine": {"hypervisor": False, "steal_in_cpu_times": True}},
    ],
)
def test_nothing_is_said_where_nothing_is_stolen_or_no_version_looked(environment: dict[str, Any]) -> None:
    assert stolen_time.note(environment) == ""
