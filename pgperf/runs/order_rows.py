"""Rows through which the owner of a run gives orders to a worker on another host: every query.

Each order has a number, and its answer repeats it. Each write is one conditional UPDATE, so a late
writer changes nothing. A row lives as long as its run's attempt.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.db import router
from django.db.models import F, Model, Q, QuerySet, TextField
from django.db.models.functions import Cast, Length

from pgperf.core.exceptions import PgperfError
from pgperf.models import Run
from pgperf.runs import state

_MIB = 1 << 20
_REFUSAL_CHARACTERS = 300


@dataclass(frozen=True)
class Answer:
    """What a worker answered to an order; `refusal` says why it will not."""

    data: dict[str, Any]
    readings: bytes
    agent: str
    refusal: str


@dataclass(frozen=True)
class OrderRows:
    """The rows of one model. `who` writes the answers, for messages; `error` is what is raised.

    Neither side loads an order or an answer that is longer than `most_characters` and `most_bytes`.
    """

    model: type[Model]
    who: str
    error: Callable[[str], PgperfError]
    most_characters: int
    most_bytes: int

    def clear(self, run: Run) -> None:
        """Remove the rows of this run, and those that ended runs left behind."""
        self.all().filter(Q(run=run) | ~Q(run__status=Run.Status.RUNNING)).delete()

    def create(self, run: Run, **fields: Any) -> int:
        """A fresh row for this attempt; its id."""
        return int(self.all().create(run=run, attempt=run.attempt, **fields).pk)

    def close(self, row_id: int) -> None:
        """The run is over: the worker finds no row any more, and leaves."""
        self.all().filter(pk=row_id).delete()

    def claim(self, row_id: int, agent: str, refusal: str = "", **more: Any) -> bool:
        """Take the row for a worker; of several messages one wins.

        A `refusal` tells the owner why it cannot be served. `more`: other fields to write with it.
        """
        own = self.live().filter(pk=row_id, agent="")
        return bool(own.update(agent=agent, refusal=refusal[:_REFUSAL_CHARACTERS], **more))

    def order(self, row_id: int, what: dict[str, Any]) -> int:
        """Ask for something; the order's number. Raises the error when the row is gone."""
        own = self.all().filter(pk=row_id)
        own.update(order=what, order_number=F("order_number") + 1, readings=b"")
        number = own.values_list("order_number", flat=True).first()
        if number is None:
            raise self.error(f"{self.who}: the row with its order was deleted")
        return int(number)

    def refuse(self, row_id: int, agent: str, reason: str) -> None:
        """Tell the owner why its order cannot be carried out."""
        self.all().filter(pk=row_id, agent=agent).update(refusal=reason[:_REFUSAL_CHARACTERS])

    def poll(self, row_id: int, agent: str) -> tuple[int, dict[str, Any]] | None:
        """The newest order and its number; None when the run is over, another attempt's, or gives no
        sign of life, and for a longer order than a run gives.
        """
        own = self.live().filter(pk=row_id, agent=agent)
        own = own.annotate(length=Length(Cast("order", TextField()))).filter(length__lte=self.most_characters)
        found = own.values_list("order_number", "order").first()
        return (found[0], found[1]) if found else None

    def answer(
        self, row_id: int, agent: str, number: int, data: dict[str, Any], readings: bytes = b""
    ) -> None:
        """Answer the newest order. One that was replaced meanwhile needs no answer any more."""
        own = self.all().filter(pk=row_id, agent=agent, order_number=number)
        own.update(answer=data, readings=readings, answer_number=number)

    def answered(self, row_id: int, number: int) -> Answer | None:
        """The answer to that order, or a refusal; None until there is one.

        Raises the error for a longer one than a worker gives, which is not loaded.
        """
        said = self.all().filter(Q(answer_number=number) | ~Q(refusal=""), pk=row_id)
        sizes = said.annotate(samples=Length("readings"), rest=Length(Cast("answer", TextField())))
        if sizes.filter(samples__gt=self.most_bytes).exists():
            raise self.error(f"{self.who}: its answer has more than {self.most_bytes // _MIB} MiB of samples")
        if sizes.filter(rest__gt=self.most_characters).exists():
            raise self.error(f"{self.who}: its answer is longer than {self.most_characters // _MIB} MiB")
        row = said.values_list("answer", "readings", "agent", "refusal").first()
        return Answer(row[0], bytes(row[1]), row[2], row[3]) if row else None

    def taken_by(self, row_id: int) -> str:
        """Which worker has the row; "" if none has."""
        return str(self.all().filter(pk=row_id).values_list("agent", flat=True).first() or "")

    def live(self) -> QuerySet[Any]:
        """Rows whose attempt is running and was heard of lately."""
        running = Q(run__status=Run.Status.RUNNING, run__attempt=F("attempt"))
        return self.all().filter(running, run__heartbeat_at__gte=state.heard_since())

    def all(self) -> QuerySet[Any]:
        manager: Any = self.model._default_manager
        found: QuerySet[Any] = manager.using(router.db_for_write(self.model))
        return found
