"""A fixed piece of work in short slices, and sleeps in between: how steady is this machine now?

A program (standard library only). Two processes pass a message to and fro, as a client and a server
do, and calculate in between. Each has a CPU of its own, where there are two. Prints one JSON object:
`slices_us`, time per operation in each slice, in which an operation counts with at most the slice's
99th percentile; `wake_ups_us`, by how much each sleep lasted longer than asked; `step_s`, the time
from one slice to the next; `cpu_s`, the CPU time of the two by CPU.
"""

import json
import os
import socket
import sys
import time

SLICE_S, LEAD_IN_S = 0.050, 0.005
_SLEEPS, _SLEEP_S = 3, 0.001
_NUMBERS, _BYTES = range(1000), 100


def main(client_cpu: int, server_cpu: int, seconds: float) -> None:
    ours, theirs = socket.socketpair()
    server = os.fork()
    if not server:
        ours.close()
        os.sched_setaffinity(0, {server_cpu})
        serve(theirs)
        os._exit(0)
    theirs.close()
    os.sched_setaffinity(0, {client_cpu})
    found = measure(ours, seconds)
    ours.close()
    os.waitpid(server, 0)
    used = os.times()
    cpu_s = {client_cpu: used.user + used.system}
    cpu_s[server_cpu] = cpu_s.get(server_cpu, 0.0) + used.children_user + used.children_system
    print(json.dumps({**found, "cpu_s": cpu_s}))


def serve(messages: socket.socket) -> None:
    """Answer each message after some work, until the other end closes."""
    while message := messages.recv(_BYTES):
        work()
        messages.sendall(message)


def measure(server: socket.socket, seconds: float) -> dict[str, object]:
    slices: list[float] = []
    late: list[float] = []
    begin = time.perf_counter()
    while not slices or time.perf_counter() - begin < seconds:
        operations(server, LEAD_IN_S)
        slices.append(mean_us(operations(server, SLICE_S)))
        late += [sleep_late_us() for _ in range(_SLEEPS)]
    step_s = (time.perf_counter() - begin) / len(slices)
    return {"slices_us": slices, "wake_ups_us": late, "step_s": step_s}


def operations(server: socket.socket, seconds: float) -> list[int]:
    """The durations of operations, one after the other, for that long, ns."""
    message, durations = bytes(_BYTES), []
    end = (now := time.perf_counter_ns()) + int(seconds * 1e9)
    while now < end:
        work()
        server.sendall(message)
        server.recv(_BYTES)
        begin, now = now, time.perf_counter_ns()
        durations.append(now - begin)
    return durations


def work() -> int:
    """Some tens of microseconds of calculation."""
    return sum(_NUMBERS)


def mean_us(durations: list[int]) -> float:
    """The mean, in which each counts with at most the 99th percentile."""
    most = sorted(durations)[int(0.99 * (len(durations) - 1))]
    return sum(min(each, most) for each in durations) / len(durations) / 1000


def sleep_late_us() -> float:
    begin = time.perf_counter()
    time.sleep(_SLEEP_S)
    return (time.perf_counter() - begin - _SLEEP_S) * 1e6


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]))
