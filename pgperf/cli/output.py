"""The streams of a command, which outlive their readers."""

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO


def tolerate_any_locale(stream: TextIO) -> None:
    """Let the stream write a question mark for a character that its encoding lacks."""
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="replace")


class Lasting:
    """A stream to write to. `reader_left`: its pipe has no reader any more, and what is written is
    lost. Nothing is raised then, so that the command carries on and its exit code has a meaning.

    Raises OSError for any other failure, such as a full disk, once.
    """

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self.reader_left = False

    def write(self, text: str) -> None:
        with self._lasting():
            self._stream.write(text)

    def flush(self) -> None:
        with self._lasting():
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    @contextmanager
    def _lasting(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError:
            self._discard()
            self.reader_left = True
        except OSError:
            self._discard()
            raise

    def _discard(self) -> None:
        """From now on it leads nowhere: the interpreter would fail again as it ends."""
        with suppress(OSError):  # a stream without a file
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)
