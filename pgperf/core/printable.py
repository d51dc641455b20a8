"""Text of others, such as a server, for a terminal and a log (pure).

A terminal obeys control characters. Invisible ones make a text look like another, and a line break
makes it look like a line of pgperf's own.
"""

_INSTEAD = "\ufffd"


def lines(text: str) -> str:
    """The text with its line breaks; in place of each other unprintable character stands U+FFFD."""
    return "".join(char if char.isprintable() or char in "\n\t" else _INSTEAD for char in text)


def one_line(text: str) -> str:
    """The same in one line, with single spaces."""
    return lines(" ".join(text.split()))


def first_line(error: Exception) -> str:
    """The first line of its message; the name of its kind where it has none."""
    return (str(error).splitlines() or [type(error).__name__])[0]
