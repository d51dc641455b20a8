"""Text that a spreadsheet would run as a formula, and how a file tells it not to. Standard library only."""

FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def is_risky(text: str) -> bool:
    """Would a spreadsheet run any line of the text as a formula, with what it cannot show or without?"""
    return any(_begins(each) for each in (text, printable(text)))


def harmless(text: str) -> str:
    """An apostrophe before a formula, and before a text that looks as if it had got one already."""
    return f"'{text}" if is_risky(text.lstrip("'")) else text


def unharmed(text: str) -> str:
    """The text that `harmless` was given."""
    return text[1:] if text.startswith("'") and is_risky(text.lstrip("'")) else text


def printable(text: str) -> str:
    """The text without control characters, which no sheet can hold; tabs and ends of lines stay."""
    return "".join(char for char in text if char.isprintable() or char in "\t\r\n")


def _begins(text: str) -> bool:
    return text.startswith(FORMULA) or any(line.lstrip().startswith(FORMULA) for line in text.splitlines())
