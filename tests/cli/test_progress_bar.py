"""The progress bar, on a terminal and in a log."""

import io

import pytest
from django.core.management.base import OutputWrapper

from pgperf.cli.progress_bar import Bar


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_log_gets_a_line_per_tenth() -> None:
    stream = io.StringIO()
    bar = Bar(OutputWrapper(stream))
    for percent in range(0, 25, 5):
        bar.progress(percent / 100, f"slice {percent}")
    bar.close()
    assert stream.getvalue() == "0 %  slice 0\n10 %  slice 10\n20 %  slice 20\n"


def test_a_log_without_a_message_has_the_percentage() -> None:
    stream = io.StringIO()
    Bar(OutputWrapper(stream)).progress(1.0, "")
    assert stream.getvalue() == "100 %\n"


def test_a_terminal_gets_a_bar_that_goes_away() -> None:
    stream = Terminal()
    bar = Bar(OutputWrapper(stream))
    bar.progress(0.5, "slice 1 of 2")
    assert stream.getvalue() == f"\r\x1b[K[{'#' * 15}{'.' * 15}]  50 %  slice 1 of 2"
    bar.close()
    assert stream.getvalue().endswith("\r\x1b[K")


@pytest.mark.parametrize("stream", [io.StringIO(), Terminal()])
def test_the_same_words_are_said_once(stream: io.StringIO) -> None:
    bar = Bar(OutputWrapper(stream))
    for words in ("Waiting.", "Waiting.", "", "Sent."):
        bar.say(words)
    assert stream.getvalue().count("Waiting.") == 1
    assert stream.getvalue().count("Sent.") == 1


def test_progress_is_not_in_an_errors_colour() -> None:
    stream = Terminal()
    wrapper = OutputWrapper(stream)
    wrapper.style_func = lambda words: f"<red>{words}"
    Bar(wrapper).say("Waiting.")
    assert "<red>" not in stream.getvalue()


def test_a_run_goes_on_where_nothing_can_be_written() -> None:
    class Full(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError("No space left on device")

    bar = Bar(OutputWrapper(Full()))
    bar.line("takes 3 s.")
    bar.progress(0.5, "slice 1")
    bar.close()
