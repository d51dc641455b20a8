"""A progress bar on a terminal; on anything else a line per tenth of the way."""

from django.core.management.base import OutputWrapper

_WIDTH = 30


class Bar:
    """A `worker.recorder.ProgressListener` that draws. Leaves an unfinished line until `close`."""

    def __init__(self, stream: OutputWrapper) -> None:
        self._stream = stream
        self._live = stream.isatty()
        self._last = ""
        self._logged: int | None = None
        self._silent = False

    def progress(self, share: float, message: str) -> None:
        """`share` 0 to 1."""
        if self._live:
            filled = round(share * _WIDTH)
            self._draw(f"[{'#' * filled}{'.' * (_WIDTH - filled)}] {share * 100:3.0f} %  {message}")
        else:
            self._log(int(share * 10) * 10, message)

    def _log(self, percent: int, message: str) -> None:
        """Once for each percentage, however often the message changes meanwhile."""
        if percent != self._logged:
            self._logged = percent
            self.say(f"{percent} %  {message}".rstrip())

    def say(self, message: str) -> None:
        """A line of its own, once as long as it stays the same."""
        if not message or message == self._last:
            return
        self._last = message
        if self._live:
            self._draw(message)
        else:
            self._write(f"{message}\n")

    def line(self, message: str) -> None:
        """A line that stays, before the bar."""
        self._write(f"{message}\n")

    def close(self) -> None:
        """Take the bar away."""
        if self._live:
            self._draw("")

    def _draw(self, line: str) -> None:
        self._write(f"\r\x1b[K{line}")

    def _write(self, piece: str) -> None:
        """Write the text without the colour of errors, which stderr has by default.

        Once that fails, the bar is silent: a run that nobody watches goes on.
        """
        if self._silent:
            return
        try:
            self._stream.write(piece, style_func=str, ending="")
            self._stream.flush()
        except OSError:
            self._silent = True
