"""Answers of load hosts: a row may be forged, and an unfit answer is an error that names the field."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pgperf
from pgperf.core import protocol
from pgperf.core.exceptions import LoadHostLate, ProtocolError
from pgperf.load import answers
from pgperf.runner.load_accounts import HostBlock
from tests.fuzz.hostile import forged

READY = protocol.encode(
    protocol.Ready(pid=1, backend_pid=2, versions={"libpq": "18"}, server_version="18", rows_per_op=1)
).decode()


def totals(data: Any) -> HostBlock:
    """Of a host that has started the clients of the first variant."""
    return answers.totals(data, {0})


COUNTS = {"user": 1, "system": 1, "voluntary": 1, "involuntary": 0}
COUNTED = {"cpus": 2, "source": "cgroup", "elapsed_ns": 1, "host_ns": None, "ours_ns": 1, "others_ns": 1}
TOTALS = {"ticks_and_switches": {"client": COUNTS}, "throttled_ns": {"client": 0}, "client_cpus": 1.5}
GENUINE: dict[Callable[[Any], Any], dict[str, Any]] = {
    answers.begun: {"pgperf": pgperf.__version__, "machine": "m", "kernel": "6", "processors": 2, "network_mbit": None},
    answers.started: {"ready": {"0": [READY]}, "op_s": {"0": 0.001}, "unlimited": ["no limit"]},
    totals: {
        "counted": COUNTED,
        "totals": {"0": TOTALS},
    },
    answers.clock: {"clock": {"ns": -5, "error_ns": 7}},
}  # fmt: skip
each_answer = pytest.mark.parametrize("read", list(GENUINE), ids=lambda read: read.__name__)


@each_answer
def test_what_a_host_says_is_read(read: Callable[[Any], Any]) -> None:
    assert read(GENUINE[read])


@each_answer
@given(data=st.data())
def test_a_forged_answer_is_read_or_refused(read: Callable[[Any], Any], data: Any) -> None:
    try:
        read(data.draw(forged(GENUINE[read])))
    except ProtocolError:
        pass


@pytest.mark.parametrize(
    ("read", "field", "value"),
    [
        (answers.begun, "pgperf", None),
        (answers.begun, "processors", 0),
        (answers.begun, "machine", "m" * 301),
        (answers.started, "op_s", {"1": 0.1}),
        (answers.started, "op_s", {"0": float("nan")}),
        (answers.started, "ready", {"0": ["{}"]}),
        (answers.started, "ready", {"zero": [READY]}),
        (totals, "counted", {}),
        (totals, "counted", {**COUNTED, "cpus": 0}),
        (totals, "totals", {"0": {}}),
        (totals, "totals", {}),
        (totals, "totals", {"0": TOTALS, "1": TOTALS}),
        (totals, "totals", {"0": {**TOTALS, "ticks_and_switches": {"client": {"user": 1}}}}),
        (answers.clock, "clock", {"ns": 2**70, "error_ns": 1}),
        (answers.clock, "clock", {"ns": 1, "error_ns": -1}),
    ],
)
def test_an_unfit_part_is_refused(read: Callable[[Any], Any], field: str, value: Any) -> None:
    with pytest.raises(ProtocolError):
        read({**GENUINE[read], field: value})


def test_a_host_with_another_version_of_pgperf_takes_no_part() -> None:
    with pytest.raises(
        ProtocolError, match=r"pgperf 0\.0\.1 is installed there, and this is .*: install the same"
    ):
        answers.begun({**GENUINE[answers.begun], "pgperf": "0.0.1"})


def test_a_late_host_says_so() -> None:
    with pytest.raises(LoadHostLate):
        answers.slices({"late": True}, b"", 3)


def test_another_number_of_slices_than_was_ordered_is_refused() -> None:
    with pytest.raises(ProtocolError, match="slices"):
        answers.slices({"slices": []}, b"x\x9c\x03\x00\x00\x00\x00\x01", 3)
