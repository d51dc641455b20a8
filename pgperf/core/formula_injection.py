"""Protects spreadsheets from formulas in text. Standard library only."""

FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def is_risky(text: str) -> bool:
    """Would a spreadsheet run a line of the text as a formula, with or without its control
    characters?
    """
    return any(_begins(each) for each in (text, printable(text)))


def harmless(text: str) -> str:
    """Put an apostrophe before a formula, and before a text that looks like an escaped formula."""
    return f"'{text}" if is_risky(text.lstrip("'")) else text


def unharmed(text: str) -> str:
    """Undo `harmless`: the original text."""
    return text[1:] if text.startswith("'") and is_risky(text.lstrip("'")) else text


def printable(text: str) -> str:
    """The text without control characters, which a sheet cannot contain. Tabs and newlines stay."""
    return "".join(char for char in text if char.isprintable() or char in "\t\r\n")


def _begins(text: str) -> bool:
    return text.startswith(FORMULA) or any(line.lstrip().startswith(FORMULA) for line in text.splitlines())
