"""The nursery's process: it imports once what its clients need, then forks each client.

Its argv: the descriptor of a listening socket, and the modules.
"""

import json
import os
import runpy
import select
import socket
import sys
from importlib import import_module
from typing import Any

import django
from django.conf import settings


def raise_clients(listener: socket.socket) -> None:
    """Until stdin closes."""
    while listener in select.select([listener, sys.stdin], [], [])[0]:
        door, _ = listener.accept()
        if not os.fork():
            os._exit(_attend(listener, door))
        door.close()
        while any(_ended()):
            pass


def _ended() -> tuple[int, int]:
    """Of one child that has ended, its process number first; zeros if there is none."""
    try:
        return os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return (0, 0)


def _attend(listener: socket.socket, door: socket.socket) -> int:
    """Fork the client, wait for it, and say how it ended."""
    text, descriptors, _flags, _address = socket.recv_fds(door, 1 << 20, 3)
    asked = json.loads(text)
    os.setpgid(0, asked["group"])
    client = os.fork()
    if client:
        for descriptor in descriptors:
            os.close(descriptor)
        door.send(str(os.waitstatus_to_exitcode(os.waitpid(client, 0)[1])).encode())
        return 0
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
        os.close(descriptor)
    listener.close()
    door.close()
    _become(asked)
    return 0


def _become(asked: dict[str, Any]) -> None:
    """The client, in the surroundings that its runner gave it."""
    os.environ.clear()
    os.environ.update(asked["environment"])
    os.chdir(asked["directory"])
    os.getppid = lambda: int(asked["parent"])
    sys.argv = asked["argv"]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    if "DJANGO_SETTINGS_MODULE" in os.environ:
        settings.DEBUG = False  # as a client does before it sets Django up
        django.setup()
    for module in sys.argv[2:]:
        import_module(module)
    raise_clients(socket.socket(fileno=int(sys.argv[1])))
