"""The operation of the layer http: requests that are timed, checked and counted.

A failed request of a slice does not end it: it is counted, with its reason. Two failures that each
take their whole deadline end the run, because no slice would end in time.
"""

import sys
from array import array
from collections import Counter
from collections.abc import Callable
from time import monotonic_ns
from typing import Any

from pgperf.clients.http.exchange import Answer
from pgperf.clients.open_loop import Arrivals
from pgperf.clients.timed_loop import Stamps, TimedWindow, Timing, lead_in, little_endian, timing
from pgperf.core.exceptions import RequestFailed
from pgperf.core.limits import REQUEST_DEADLINE_S
from pgperf.core.protocol import HTTP_PHASES, MAX_PHASED_SAMPLES, Slice

#: Requests of one slice may fail for this long in all.
_FAILING_NS = round(1.2 * REQUEST_DEADLINE_S * 1e9)
_NOTHING = Answer(0, 0, 0)


class Requests:
    """One request, again and again. The first answer tells how long the others should be: between
    half and twice of that.
    """

    def __init__(self, exchange: Callable[[], Answer]) -> None:
        self._exchange, self._expected_bytes = exchange, 0
        self._parts = [array("Q", [0]) * MAX_PHASED_SAMPLES for _ in HTTP_PHASES]
        self._begin_slice()

    def __call__(self) -> int:
        """Make one request. Raises RequestFailed. It reads no row of a database."""
        self._checked()
        return 0

    def connect(self) -> None:
        """Each request connects by itself."""

    def close(self) -> None:
        """Likewise."""

    def run_slice(self, request: Slice, stamps: list[Stamps]) -> Timing:
        self._begin_slice()
        window = TimedWindow(request, stamps[0])
        lead_in_ops, first_ns = lead_in(self._counted, request.lead_in_ops, window.lead_in_until_ns)
        close_ns = window.close_ns(first_ns)
        ops = self._record(stamps[0], window.limit, close_ns) if first_ns < close_ns else 0
        found = timing([window.chain(lead_in_ops, first_ns, ops, 0)])
        return found._replace(
            rows=None,
            durations=found.durations + b"".join(little_endian(part[:ops]) for part in self._parts),
            phases=list(HTTP_PHASES),
            **self._counts(),
        )

    def prepare(self) -> None:
        """Nothing to do before a slice."""

    def serve(self, arrivals: Arrivals) -> int:
        """Make the requests of an open loop, each when it is due. They read no row."""
        self._begin_slice()
        connects, first_bytes = arrivals.timed(HTTP_PHASES)
        for number in arrivals.taken():
            answer = self._counted()
            connects[number], first_bytes[number] = answer.connect_ns, answer.first_byte_ns
            arrivals.ended[number] = monotonic_ns()
        arrivals.counts = self._counts()
        return 0

    def _counts(self) -> dict[str, Any]:
        """The failures and lengths of a slice, as fields of a Timing."""
        lengths = [self._least, self._most] if self._most >= 0 else []
        return {"errors": dict(self._errors), "lengths": lengths}

    def _begin_slice(self) -> None:
        self._errors: Counter[str] = Counter()
        self._failing_ns = 0
        self._least, self._most = sys.maxsize, -1

    def _record(self, stamps: Stamps, limit: int, close_ns: int) -> int:
        connects, first_bytes, clock = *self._parts, monotonic_ns
        for index in range(limit):
            answer = self._counted()
            connects[index], first_bytes[index] = answer.connect_ns, answer.first_byte_ns
            now = clock()
            stamps[index] = now
            if now >= close_ns:
                break
        return index + 1

    def _counted(self) -> Answer:
        """One request; a failure is counted."""
        begin = monotonic_ns()
        try:
            answer = self._checked()
        except RequestFailed as error:
            self._errors[error.reason] += 1
            self._failing_ns += monotonic_ns() - begin
            if self._failing_ns > _FAILING_NS:
                raise
            return _NOTHING
        if answer.length < self._least:
            self._least = answer.length
        if answer.length > self._most:
            self._most = answer.length
        return answer

    def _checked(self) -> Answer:
        """One answer, of about the expected length."""
        answer = self._exchange()
        length, expected = answer.length, self._expected_bytes or answer.length
        if not expected <= 2 * length <= 4 * expected:
            raise RequestFailed("a body of another length", f"{length:,} bytes, not about {expected:,}")
        self._expected_bytes = expected
        return answer
