"""Where the time of one operation goes: on a processor, in a run queue, or waiting for neither. Pure."""

from collections.abc import Mapping
from typing import Any

PARTS = ("client", "pooler", "server", "run_queue", "waiting", "unseen")


def spent(
    us_per_op: float | None, cpu_us: Mapping[str, float | None], wait_us: Mapping[str, float | None]
) -> dict[str, float | None]:
    """The parts of `us_per_op` in µs; null is not known.

    A closed loop's operation is served by one process at a time, so processor times and waits for a processor add up,
    and what is left is waiting: the network, waking up, locks, disks, the pool's queue. Where a part is not known,
    what is left holds it too, and is `unseen` instead of `waiting`. Parts that overlap leave nothing.
    """
    client = _sum(cpu_us.get("client_user"), cpu_us.get("client_sys"))
    parts = {"client": client, "pooler": cpu_us.get("pooler"), "server": cpu_us.get("server")}
    queue = _sum(*(_wait(part, used, wait_us) for part, used in parts.items()))
    known = {**parts, "run_queue": queue}
    rest = _rest(us_per_op, known)
    whole = None not in known.values()
    return {**known, "waiting": rest if whole else None, "unseen": None if whole else rest}


def _wait(part: str, used: float | None, wait_us: Mapping[str, Any]) -> float | None:
    """A part that is not there, as a pooler on a direct route, waits for nothing."""
    value = wait_us.get(part)
    return 0.0 if value is None and used == 0 else value


def _rest(us_per_op: float | None, known: Mapping[str, float | None]) -> float | None:
    if us_per_op is None or known["client"] is None:
        return None
    return max(0.0, us_per_op - sum(us for us in known.values() if us is not None))


def _sum(*values: float | None) -> float | None:
    """The sum; null if any is."""
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None
