"""The parts of one operation's time: on a CPU, in a run queue, or waiting for neither. Pure."""

from pgperf.analysis.cpu_account import CpuPerOperation, Known

PARTS = ("client", "pooler", "server", "run_queue", "waiting", "unseen")


def time_parts(us_per_op: float | None, cpu_us: CpuPerOperation, wait_us: Known) -> dict[str, float | None]:
    """The parts of `us_per_op` in µs; None is not known. `wait_us`: time in run queues by role.

    One process at a time serves an operation in a closed loop, so CPU times and run-queue times add
    up, and the rest is waiting: for the network, for waking up, for locks, disks or the pool. Where
    a part is not known, the rest holds it too and is `unseen` instead of `waiting`. Where the parts
    overlap, the rest is 0.
    """
    cpu = {"client": cpu_us.client, "pooler": cpu_us.pooler, "server": cpu_us.server}
    known = {**cpu, "run_queue": _sum(*(_wait(used, wait_us[role]) for role, used in cpu.items()))}
    rest = _rest(us_per_op, known)
    whole = None not in known.values()
    return {**known, "waiting": rest if whole else None, "unseen": None if whole else rest}


def _wait(used: float | None, wait: float | None) -> float | None:
    """A role that does not take part, as a pooler on a direct route, waits for nothing."""
    return 0.0 if wait is None and used == 0 else wait


def _rest(us_per_op: float | None, known: Known) -> float | None:
    if us_per_op is None or known["client"] is None:
        return None
    return max(0.0, us_per_op - sum(us for us in known.values() if us is not None))


def _sum(*values: float | None) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None
