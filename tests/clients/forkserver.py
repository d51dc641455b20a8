"""Forks clients for tests from a process that has made their imports, which are most of their start.

`python -m tests.clients.forkserver SOCKET NAME...` imports the names; it hides one with a minus
before it, and sets the variable of NAME=VALUE. An order over the socket is three streams, a module
and its arguments, with zero bytes between them. A new process runs the module as `python -m` does.
It is a child of the process that ordered it, which must be a subreaper then; the answer is its pid.
"""

import gc
import os
import runpy
import socket
import sys
import time
from importlib import import_module
from typing import Any, NoReturn

ORDER_BYTES = 4096
ANSWER_BYTES = 8


def main() -> None:
    orders = socket.socket(fileno=int(sys.argv[1]))
    for name in sys.argv[2:]:
        _prepare(name)
    gc.freeze()  # so that a collection of a client copies no page of these
    while True:
        order, streams, _, _ = socket.recv_fds(orders, ORDER_BYTES, 3)
        if not order:
            return
        argv = order.decode().split("\0")
        orders.sendall(_fork(argv, streams, orders).to_bytes(ANSWER_BYTES, "big"))
        for stream in streams:
            os.close(stream)


def _prepare(name: str) -> None:
    if "=" in name:
        os.environ.update([name.split("=")])
    elif name.startswith("-"):
        hidden: dict[str, Any] = {name[1:]: None}
        sys.modules.update(hidden)
    else:
        import_module(name)


def _fork(argv: list[str], streams: list[int], orders: socket.socket) -> int:
    """The pid of a client, which leads a process group and whose parent is the subreaper."""
    reader, writer = os.pipe()
    between = os.fork()
    if not between:
        pid = _fork_client(argv, streams, (orders.fileno(), reader, writer))
        os.write(writer, pid.to_bytes(ANSWER_BYTES, "big"))
        os._exit(0)
    os.close(writer)
    os.waitpid(between, 0)
    pid = int.from_bytes(os.read(reader, ANSWER_BYTES), "big")
    os.close(reader)
    return pid


def _fork_client(argv: list[str], streams: list[int], not_its_own: tuple[int, ...]) -> int:
    """The pid of a client, which begins when this process has ended."""
    parent, pid = os.getpid(), os.fork()
    if not pid:
        for each in not_its_own:
            os.close(each)
        while os.getppid() == parent:
            time.sleep(0.0005)
        _be_client(argv, streams)
    os.setpgid(pid, pid)
    return pid


def _be_client(argv: list[str], streams: list[int]) -> NoReturn:
    """Run the module with these streams."""
    for at, stream in enumerate(streams):
        os.dup2(stream, at)
        os.close(stream)
    sys.modules.pop(argv[0], None)  # as in a new process
    sys.argv = argv
    try:
        runpy.run_module(argv[0], run_name="__main__", alter_sys=True)
    except BaseException:
        sys.excepthook(*sys.exc_info())  # type: ignore[arg-type]
    os._exit(1)


if __name__ == "__main__":
    main()
