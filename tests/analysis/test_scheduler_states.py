"""The parts of one operation's time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgperf.analysis.cpu_account import ROLES, CpuPerOperation
from pgperf.analysis.scheduler_states import PARTS, thread_us, time_parts

CPU = {"client_user": 40.0, "client_sys": 10.0, "pooler": 14.0, "server": 20.0}
WAIT = {"client": 3.0, "pooler": 1.0, "server": 2.0}


def spent(us: float | None, cpu: dict[str, float | None], wait: dict[str, float]) -> dict[str, float | None]:
    """Waits that are not given are not known."""
    used = {role: CpuPerOperation(**cpu).of(role) for role in ROLES}
    return time_parts(us, used, {"client": None, "pooler": None, "server": None, **wait})


US = st.none() | st.floats(0, 1e7)


def test_the_remaining_time_is_waiting() -> None:
    assert spent(100.0, CPU, WAIT) == {
        "client": 50.0, "proxy": 0.0, "web": 0.0, "pooler": 14.0, "server": 20.0, "run_queue": 6.0,
        "interpreter": 0.0, "waiting": 10.0,
        "unseen": None,
    }  # fmt: skip


def test_a_direct_route_s_pooler_waits_for_nothing() -> None:
    parts = spent(100.0, CPU | {"pooler": 0.0}, {"client": 3.0, "server": 2.0})
    assert (parts["pooler"], parts["run_queue"], parts["waiting"]) == (0.0, 5.0, 25.0)


@pytest.mark.parametrize("lacking", ["server", "pooler"])
def test_what_is_left_may_be_a_part_that_is_not_seen(lacking: str) -> None:
    parts = spent(100.0, CPU | {lacking: None}, WAIT)
    assert parts[lacking] is None
    assert parts["waiting"] is None
    assert parts["unseen"] == 100.0 - sum(us for us in (50.0, 14.0, 20.0) if us != CPU[lacking]) - 6.0


def test_an_unknown_wait_is_not_taken_for_none() -> None:
    parts = spent(100.0, CPU, {"client": 3.0, "pooler": 1.0})
    assert (parts["run_queue"], parts["waiting"], parts["unseen"]) == (4.0, None, 12.0)


def test_a_queue_that_is_known_of_no_role_is_not_zero() -> None:
    parts = spent(100.0, CPU | {"pooler": 0.0}, {})
    assert (parts["run_queue"], parts["unseen"]) == (None, 30.0)


def test_parts_that_overlap_leave_nothing() -> None:
    assert spent(70.0, CPU, WAIT)["waiting"] == 0.0


@given(US, st.dictionaries(st.sampled_from(list(CPU)), US), st.dictionaries(st.sampled_from(list(WAIT)), US))
def test_parts_never_exceed_what_was_measured_and_never_make_up_for_the_unknown(us, cpu, wait) -> None:  # type: ignore[no-untyped-def]
    parts = spent(us, cpu, wait)
    assert tuple(parts) == PARTS
    known = [value for value in parts.values() if value is not None]
    assert all(value >= 0 for value in known)
    assert parts["waiting"] is None or parts["unseen"] is None
    if parts["waiting"] is not None:
        assert sum(known) >= us * (1 - 1e-9)


@pytest.mark.parametrize(
    ("under_way", "workers", "waited_us"),
    [(0.0, 10, 0.0), (1.0, 10, 50.0), (10.0, 10, 90.0), (0.9, 1, 0.0), (None, 10, None)],
)
def test_an_operation_waits_for_the_thread_behind_those_under_way(
    under_way: float | None, workers: int, waited_us: float | None
) -> None:
    assert thread_us(100.0, under_way, workers) == waited_us
