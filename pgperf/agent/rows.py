"""The Sampling rows, one of which a run and its agent share."""

from pgperf.core.exceptions import AgentFailed
from pgperf.models import Run, Sampling
from pgperf.runner.remote.counters import MAX_PACKED_BYTES
from pgperf.runs.order_rows import OrderRows

#: Of an answer without its samples: 10,000 processes with their names take half as much.
_MAX_ANSWER_CHARACTERS = 1 << 20

ROWS = OrderRows(Sampling, "the agent", AgentFailed, _MAX_ANSWER_CHARACTERS, MAX_PACKED_BYTES)


def open_for(run: Run, queue: str) -> int:
    """A fresh row for this attempt; those that ended runs left behind are cleared away. Its id."""
    ROWS.clear(run)
    return ROWS.create(run, queue=queue)


claim, close, order, refuse, poll = ROWS.claim, ROWS.close, ROWS.order, ROWS.refuse, ROWS.poll
answer, answered, taken_by = ROWS.answer, ROWS.answered, ROWS.taken_by
