"""Forks processes that find their imports made, which are most of a program's start.

`python program.py SOCKET CODE` runs the code, then takes orders. An order is the three streams of a
process, and as JSON the words after `python` that name its program, its environment and its
directory; null is the same as here. The process is a child of the one that ordered it, which must
be a subreaper then, and leads a process group. It answers with its pid.

The Pythons of sites run this file, so it imports the standard library only.
"""

import gc
import json
import os
import runpy
import socket
import sys
import time

ORDER_BYTES = 1 << 20


def main() -> None:
    sys.path[0] = os.getcwd()  # in place of this file's directory
    orders = socket.socket(fileno=int(sys.argv[1]))
    exec(sys.argv[2], {})
    sys.stdout.flush()
    gc.freeze()  # so that a collection of a process copies no page of these
    _serve(orders)


def _serve(orders: socket.socket) -> None:
    """Returns at the end of the orders, and in each process at the end of its program."""
    while True:
        order, streams, _, _ = socket.recv_fds(orders, ORDER_BYTES, 3)
        if not order:
            return
        if _forks(orders):
            _become(streams, *json.loads(order))
            return
        for stream in streams:
            os.close(stream)


def _forks(orders: socket.socket) -> bool:
    """True in the new process, which answers when the one between has ended."""
    if child := os.fork():
        os.waitpid(child, 0)
        return False
    between = os.getpid()
    if os.fork():
        os._exit(0)
    while os.getppid() == between:
        time.sleep(0.0005)
    os.setpgid(0, 0)
    with orders:
        orders.send(str(os.getpid()).encode())
    return True


def _become(
    streams: list[int], words: list[str], environment: dict[str, str] | None, directory: str | None
) -> None:
    """Run the program with these streams, in these surroundings."""
    for at, stream in enumerate(streams):
        os.dup2(stream, at)
        os.close(stream)
    if environment is not None:
        os.environ.clear()
        os.environ.update(environment)
    os.chdir(directory or ".")
    _run(words)


def _run(words: list[str]) -> None:
    """As `python` with these words."""
    if words[0] != "-m":
        sys.argv = words
        runpy.run_path(words[0], run_name="__main__")
        return
    sys.argv = words[1:]
    sys.modules.pop(words[1], None)  # as in a new process
    runpy.run_module(words[1], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
