"""The parts of one operation's time: on a CPU, in a run queue, or waiting for neither. Pure."""

from pgperf.analysis.cpu_account import ROLES, Known

PARTS = (*ROLES, "run_queue", "interpreter", "waiting", "unseen")


def time_parts(
    us_per_op: float | None, cpu_us: Known, wait_us: Known, interpreter_us: float | None = 0.0
) -> dict[str, float | None]:
    """The parts of `us_per_op` in µs; None is not known. `cpu_us`, `wait_us`: time on CPUs and in run
    queues by role;
    `interpreter_us`: the most that it may have waited for its process's interpreter.

    One process at a time serves an operation in a closed loop, so CPU times and run-queue times add
    up, and the rest is waiting: for the network, for waking up, for locks, disks or the pool. Where
    the CPU time or the run queue of a role is not known, the rest holds it too and is `unseen`
    instead of `waiting`. Where the parts overlap, the rest is 0.
    """
    cpu = {role: cpu_us[role] for role in ROLES}
    known = {**cpu, "run_queue": queue_us(cpu, wait_us)}
    rest = _rest(us_per_op, known)
    waited = None if rest is None or interpreter_us is None else min(rest, interpreter_us)
    rest = None if rest is None else rest - (waited or 0.0)
    whole = None not in cpu.values() and None not in _queues(cpu, wait_us)
    return {
        **known,
        "interpreter": waited,
        "waiting": rest if whole else None,
        "unseen": None if whole else rest,
    }


def queue_us(cpu_us: Known, wait_us: Known) -> float | None:
    """Time in run queues of the roles that take part, where it is known; None where it is known of
    none of them.
    """
    waits = _queues(cpu_us, wait_us)
    known = [us for us in waits if us is not None]
    return sum(known) if known or not waits else None


def process_busy(ops_per_s: float | None, client_us: float | None, clients: int) -> float | None:
    """The share of the time that each of so many client processes spent on operations of
    `client_us`, by the utilisation law.
    """
    return None if ops_per_s is None or client_us is None else ops_per_s * client_us / 1e6 / max(1, clients)


def interpreter_us(busy: float | None, held_us: float | None, workers: int) -> float | None:
    """The most that an operation of one of several workers waited for the interpreter of their
    process, µs; 0 for one worker.

    Each operation holds the interpreter for `held_us`, in all for the share `busy` of the time. The
    others are ahead of it at most once each, and a queue before a server that is busy for a share b
    of the time is no longer than b / (1 - b) where its customers come at random.
    """
    if workers == 1:
        return 0.0
    if busy is None or held_us is None:
        return None
    ahead = float(workers - 1)
    return held_us * (ahead if busy >= 1 else min(ahead, busy / (1 - busy)))


def thread_us(us_per_op: float | None, under_way: float | None, workers: int) -> float | None:
    """The most that an operation waited for the one thread that the workers of its process share, µs,
    with so many operations `under_way` at a time.

    Where operations come at random, each finds as many ahead of it. All have the thread equally long,
    and the others are ahead of one at most once each.
    """
    if us_per_op is None or under_way is None:
        return None
    return us_per_op * min(under_way / (1 + under_way), 1 - 1 / workers)


def _queues(cpu_us: Known, wait_us: Known) -> list[float | None]:
    """A role that does not take part, as a pooler on a direct route, waits for nothing."""
    return [wait_us.get(role) for role, used in cpu_us.items() if used != 0]


def _rest(us_per_op: float | None, known: Known) -> float | None:
    if us_per_op is None or known["client"] is None:
        return None
    return max(0.0, us_per_op - sum(us for us in known.values() if us is not None))
