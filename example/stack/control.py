"""A Unix socket by which the site's other processes ask the stack to start web servers anew.

One request is one connection: a line of JSON each way, `{"start_anew": ["web_nginx"], "block": 3}`
and `{"error": ""}`. Only the user of the stack can connect.
"""

import json
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from example.stack.errors import StackError

#: The steps to start anew, and the number of the block that they serve.
StartAnew = Callable[[Sequence[str], int], None]

READ_TIMEOUT_S = 5
ANSWER_TIMEOUT_S = 300
MAX_BYTES = 65536


class Control:
    """The stack's end of the socket. It waits for one request at a time."""

    def __init__(self, path: Path, start_anew: StartAnew) -> None:
        self._start_anew = start_anew
        path.unlink(missing_ok=True)
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(str(path))
        path.chmod(0o600)
        self._socket.listen()

    def fileno(self) -> int:
        return self._socket.fileno()

    def answer(self) -> None:
        """Do what the next connection asks for. It may be slow, wrong or gone."""
        connection, _ = self._socket.accept()
        with connection, suppress(OSError):
            connection.settimeout(READ_TIMEOUT_S)
            error = self._perform(_line(connection))
            connection.sendall(json.dumps({"error": error}).encode() + b"\n")

    def close(self) -> None:
        self._socket.close()

    def _perform(self, line: bytes) -> str:
        """The reason why the request failed; "" if it did not."""
        try:
            request = json.loads(line)
            names, block = [str(name) for name in request["start_anew"]], int(request["block"])
        except (ValueError, TypeError, KeyError, RecursionError):
            return 'a request is {"start_anew": [step, ...], "block": number}'
        try:
            self._start_anew(names, block)
        except (StackError, OSError) as error:
            return str(error)
        return ""


def start_anew(path: Path, names: Sequence[str], block: int) -> None:
    """Ask the stack to start these steps anew, and wait until they answer.

    Raises StackError with the reason if they do not, or if the stack does not run.
    """
    request = json.dumps({"start_anew": list(names), "block": block}).encode() + b"\n"
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(ANSWER_TIMEOUT_S)
            connection.connect(str(path))
            connection.sendall(request)
            answer = _line(connection)
    except OSError as error:
        raise StackError(
            f"the stack does not answer at {path}: {error}; start it with `make up-web`"
        ) from error
    if not answer:
        raise StackError("the stack ended before it had started the web servers")
    if reason := json.loads(answer)["error"]:
        raise StackError(reason)


def _line(connection: socket.socket) -> bytes:
    """The bytes before the first line feed, or before the other end closes."""
    read = b""
    while b"\n" not in read and len(read) < MAX_BYTES:
        more = connection.recv(4096)
        if not more:
            break
        read += more
    return read.partition(b"\n")[0]
