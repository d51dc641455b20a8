"""The Sampling row that a run and its agent share: every query on it.

Each order has a number, and its answer repeats it. Each write is one conditional UPDATE, so a late
writer changes nothing. The row lives as long as its run's attempt.
"""

from dataclasses import dataclass
from typing import Any

from django.db import router
from django.db.models import F, Q, QuerySet, TextField
from django.db.models.functions import Cast, Length

from pgperf.core.exceptions import AgentFailed
from pgperf.models import Run, Sampling
from pgperf.runner.remote.counters import MAX_PACKED_BYTES
from pgperf.runs import state

_MIB = 1 << 20
#: Of an answer without its samples: 10,000 processes with their names take half as much.
_MAX_ANSWER_CHARACTERS = _MIB


@dataclass(frozen=True)
class Answer:
    """What the agent answered to an order; `refusal` says why it will not."""

    data: dict[str, Any]
    readings: bytes
    agent: str
    refusal: str


def open_for(run: Run, queue: str) -> int:
    """A fresh row for this attempt; those that ended runs left behind are cleared away. Its id."""
    _rows().filter(Q(run=run) | ~Q(run__status=Run.Status.RUNNING)).delete()
    return int(_rows().create(run=run, attempt=run.attempt, queue=queue).pk)


def close(row_id: int) -> None:
    """The run is over: the agent finds no row any more, and leaves."""
    _rows().filter(pk=row_id).delete()


def claim(row_id: int, agent: str, refusal: str = "") -> bool:
    """Take the row for an agent; of several messages one wins.

    A `refusal` tells the owner why it cannot be served.
    """
    return bool(_live().filter(pk=row_id, agent="").update(agent=agent, refusal=refusal[:300]))


def order(row_id: int, what: dict[str, Any]) -> int:
    """Ask for something; the order's number. Raises AgentFailed when the row is gone."""
    number = F("order_number") + 1
    if not _rows().filter(pk=row_id).update(order=what, order_number=number, readings=b""):
        raise AgentFailed("agent: the row with its order was deleted")
    return int(_rows().values_list("order_number", flat=True).get(pk=row_id))


def refuse(row_id: int, agent: str, reason: str) -> None:
    """Tell the owner why its order cannot be carried out."""
    _rows().filter(pk=row_id, agent=agent).update(refusal=reason[:300])


def poll(row_id: int, agent: str) -> tuple[int, dict[str, Any]] | None:
    """The newest order and its number; None when the run is over, another attempt's, or gives no
    sign of life.
    """
    found = _live().filter(pk=row_id, agent=agent).values_list("order_number", "order").first()
    return (found[0], found[1]) if found else None


def answer(row_id: int, agent: str, number: int, data: dict[str, Any], readings: bytes = b"") -> None:
    """Answer the newest order. One that was replaced meanwhile needs no answer any more."""
    own = _rows().filter(pk=row_id, agent=agent, order_number=number)
    own.update(answer=data, readings=readings, answer_number=number)


def answered(row_id: int, number: int) -> Answer | None:
    """The answer to that order, or a refusal; None until there is one.

    Raises AgentFailed for a longer one than an agent gives, which is not loaded.
    """
    said = _rows().filter(Q(answer_number=number) | ~Q(refusal=""), pk=row_id)
    sizes = said.annotate(samples=Length("readings"), rest=Length(Cast("answer", TextField())))
    if sizes.filter(samples__gt=MAX_PACKED_BYTES).exists():
        raise AgentFailed(f"the agent's answer has more than {MAX_PACKED_BYTES // _MIB} MiB of samples")
    if sizes.filter(rest__gt=_MAX_ANSWER_CHARACTERS).exists():
        raise AgentFailed(f"the agent's answer is longer than {_MAX_ANSWER_CHARACTERS // _MIB} MiB")
    row = said.first()
    return Answer(row.answer, bytes(row.readings), row.agent, row.refusal) if row else None


def taken_by(row_id: int) -> str:
    """Which agent has the row; "" if none has."""
    return str(_rows().filter(pk=row_id).values_list("agent", flat=True).first() or "")


def _live() -> QuerySet[Sampling]:
    """Rows whose attempt is running and was heard of lately."""
    running = Q(run__status=Run.Status.RUNNING, run__attempt=F("attempt"))
    return _rows().filter(running, run__heartbeat_at__gte=state.heard_since())


def _rows() -> QuerySet[Sampling]:
    return Sampling.objects.using(router.db_for_write(Sampling))
