"""Looks at this process's machine: for a request that a worker takes, and for a command."""

from dataclasses import replace
from typing import Any

from pgperf.analysis.machine_look import MachineLook as Look
from pgperf.core.exceptions import LookFailed, PgperfError
from pgperf.core.records import PREDICTED, Plan
from pgperf.runner import machine_look, prediction
from pgperf.runs import machine_looks, state


def serve(row_id: int, worker: str, pool_refusal: str) -> None:
    """Take a request and store the answer, or why there is none. A request that is too old, or that
    another worker took, is left alone.
    """
    if not machine_looks.claim(row_id, worker):
        return
    try:
        if pool_refusal:
            raise LookFailed(pool_refusal)
        machine_looks.answer(row_id, look())
    except PgperfError as error:
        machine_looks.refuse(row_id, str(error))


def look_and_keep() -> Look:
    """The same without a request, for runs on this machine. Raises LookFailed."""
    found = look()
    machine_looks.answer(machine_looks.begin_here().pk, found)
    return found


def look() -> Look:
    """Raises LookFailed, also while a run measures here: the look would disturb it."""
    if state.busy_with(state.this_machine()):
        raise LookFailed("a run of pgperf measures on this machine now; check again when it has ended")
    return machine_look.look()


def predicted(plan: Plan) -> dict[str, Any]:
    """What the last look at this machine says of a plan, for a run's environment; empty without a
    look that is young enough.
    """
    row = machine_looks.valid_here()
    if any(variant.hosts for variant in plan.variants):
        return {}  # it says nothing of other machines
    if row is None or (seen := Look.from_json(row.findings)) is None:
        return {}
    if (found := prediction.predicted(plan, seen)) is None:
        return {}
    return {PREDICTED: replace(found, looked_s=machine_looks.age_s(row)).to_json()}
