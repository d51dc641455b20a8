"""A look at the machine: what makes a moment bad, and its JSON."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgperf.analysis.machine_look import SPEED, WAKE_UP, MachineLook, Program, Trouble, troubles
from tests.machine_looks import QUIET, look


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, []),
        ({"others": {0: 0.099, 1: None}, "steal": None}, []),
        ({"others": {0: 0.1}}, [Trouble("run_queue", 0.1, 0)]),
        ({"others": {0: 0.2, 1: 0.4}}, [Trouble("run_queue", 0.4, 1), Trouble("run_queue", 0.2, 0)]),
        ({"steal": 0.05}, [Trouble("steal", 0.05)]),
        ({"wake_up_us": (80.0, 1000.0)}, [Trouble(WAKE_UP, us=1000.0)]),
    ],
)
def test_what_disturbs(changed: dict[str, object], expected: list[Trouble]) -> None:
    assert [*troubles(replace(QUIET, **changed))] == expected  # type: ignore[arg-type]


@pytest.mark.parametrize(("scatter", "is_bad"), [(0.03, False), (0.05, True)])
def test_a_moment_in_which_equal_work_scatters_is_bad_though_no_counter_shows_why(
    scatter: float, is_bad: bool
) -> None:
    """Slices are so much shorter or longer than the middle; two in a row differ by twice as much."""
    assert [trouble.source for trouble in troubles(look(scatter))] == [SPEED] * is_bad


def test_too_few_slices_show_no_scatter() -> None:
    assert not troubles(replace(QUIET, slices_us=(1.0, 900.0)))


@given(
    st.dictionaries(st.integers(0, 512), st.none() | st.floats(0, 1)),
    st.none() | st.floats(0, 1),
    st.lists(st.floats(1, 1e9), max_size=5),
    st.lists(st.text(max_size=16), max_size=3),
)
def test_a_look_survives_its_json(
    others: dict[int, float | None], steal: float | None, us: list[float], names: list[str]
) -> None:
    programs = tuple(Program(name, 0.5) for name in names)
    look = replace(QUIET, others=others, steal=steal, slices_us=tuple(us), programs=programs)
    assert MachineLook.from_json(json.loads(json.dumps(look.to_json()))) == look


@pytest.mark.parametrize("stored", [{}, {"seconds": 5.0}, {**QUIET.to_json(), "more": 1}])
def test_what_another_version_stored_is_no_look(stored: dict[str, object]) -> None:
    assert MachineLook.from_json(stored) is None
