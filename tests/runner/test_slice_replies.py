"""Replies to a slice: what a client records is read, and what none can record is refused by name."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgperf.core import protocol
from pgperf.core.exceptions import ProtocolError
from pgperf.runner.slice_replies import check
from pgperf.runner.slice_window import Recorded, SliceWindow

MS = 1_000_000
START = 1_000 * MS
WINDOW = protocol.Slice(seq=1, start_ns=START, lead_in_ns=MS, window_ns=10 * MS)
COUNT = protocol.Slice(seq=1, count=3)
RATE = WINDOW._replace(rate=1_000.0)
REQUESTS = {"a common window": WINDOW, "a count": COUNT, "a rate": RATE}
each_request = pytest.mark.parametrize("request_", REQUESTS.values(), ids=list(REQUESTS))


def recorded(request: protocol.Slice) -> Recorded:
    """Of two clients, three operations each."""
    phases = [protocol.LAG] if request.rate else []
    reply = protocol.SliceReply(
        seq=1, ops=3, rows=3, lead_in_ops=1, first_ns=START, user_ns=1, sys_ns=1, capped=False, nbytes=24,
        phases=phases,
    )  # fmt: skip
    durations = np.array([2 * MS, MS, 3 * MS], dtype=np.uint64)
    parts = np.zeros((len(phases), 3), dtype=np.uint64)
    return Recorded([reply] * 2, [durations] * 2, [parts] * 2)


def forged(found: Recorded, **fields: Any) -> Recorded:
    """With these fields in the second reply."""
    first, second = found.replies
    return found._replace(replies=[first, second._replace(**fields)])


@each_request
def test_a_genuine_reply_passes(request_: protocol.Slice) -> None:
    check(request_, *recorded(request_))


@each_request
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("ops", 4), ("ops", -1), ("ops", 2**62), ("rows", -1), ("first_ns", 2**63), ("user_ns", -5),
        ("skipped", 1), ("backlog", -1), ("overran_ns", -1), ("lengths", [-1, 2]),
        ("errors", {"500": -1}), ("worker_ops", [1, 1]), ("worker_first_ns", [START]), ("phases", ["connect"]),
    ],
)  # fmt: skip
def test_a_forged_field_is_named(request_: protocol.Slice, field: str, value: Any) -> None:
    named = {"skipped": "ops", "worker_first_ns": "worker_ops"}.get(field, field)
    with pytest.raises(ProtocolError, match=f"no valid {named}$"):
        check(request_, *forged(recorded(request_), **{field: value}))


def test_durations_that_no_clock_measures_are_refused() -> None:
    found = recorded(COUNT)
    durations = np.array([1, 2**63, 1], dtype=np.uint64)
    with pytest.raises(ProtocolError, match="durations"):
        check(COUNT, *found._replace(durations=[durations, durations]))


NUMBERS = st.integers(-(2**65), 2**65) | st.integers(-3, 5)
FIELDS = {
    **dict.fromkeys(("ops", "lead_in_ops", "first_ns", "user_ns", "sys_ns", "window_ns", "skipped"), NUMBERS),
    "rows": NUMBERS | st.none(),
    "capped": st.booleans(),
    "worker_ops": st.lists(NUMBERS, max_size=3),
    "worker_first_ns": st.lists(NUMBERS, max_size=3),
    "phases": st.lists(st.sampled_from(["lag", "connect", "close", "x"]), max_size=2),
}


@given(request=st.sampled_from(list(REQUESTS.values())), fields=st.fixed_dictionaries({}, optional=FIELDS))
def test_what_passes_can_be_counted(request: protocol.Slice, fields: dict[str, Any]) -> None:
    found = forged(recorded(request), **fields)
    try:
        check(request, *found)
        SliceWindow.of(request, *found)
    except ProtocolError:
        pass
