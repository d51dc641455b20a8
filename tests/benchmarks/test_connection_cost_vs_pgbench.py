"""benchmarks.connection_cost_vs_pgbench: its slices, and the processes behind its intervals."""

from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks import connection_cost_vs_pgbench as script
from benchmarks.connection_cost_vs_pgbench import CASES, Slot
from pgperf.runner.plan import make_plan


def groups(case: str) -> list[Any]:
    """Of the case's variants, without clients."""
    variants = make_plan(CASES[case].definition).variants
    return [SimpleNamespace(variant=variant) for variant in variants if not variant.control]


@pytest.fixture(autouse=True)
def _without_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script, "armed", lambda group, request: request)
    monkeypatch.setattr(script, "_slot", lambda group, request: Slot(100.0, 10.0, 0.0))


def test_every_pair_has_a_slice_of_each_layer_in_each_round() -> None:
    found = script._measure(groups("kept"), lambda group: "", 3, 1)
    assert set(found) == {(mode, clients) for mode in ("simple", "prepared") for clients in (1, 8)}
    assert {len(found[pair][layer]) for pair in found for layer in script.LAYERS} == {3}


def test_backends_that_have_not_left_end_the_script() -> None:
    with pytest.raises(SystemExit, match=r"cannot measure: .*: a backend is still there"):
        script._measure(groups("connect"), lambda group: "a backend is still there", 1, 1)


def test_each_case_is_measured_with_several_sets_of_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[str] = []

    @contextmanager
    def departing(stack: object, definition: object, name: str) -> Iterator[Any]:
        started.append(name)
        yield groups("kept"), lambda group: ""

    monkeypatch.setattr(script, "departing", departing)
    options = Namespace(processes=8, rounds=3, slot_s=1)
    found = script._measured(None, "kept", options)
    assert started == [f"kept-{number}" for number in range(8)]
    for by_layer in found.values():
        assert {layer: [*map(len, slots)] for layer, slots in by_layer.items()} == {
            layer: [3] * 8 for layer in script.LAYERS
        }
    assert script.measured_of(script.line_of(found)) == found
