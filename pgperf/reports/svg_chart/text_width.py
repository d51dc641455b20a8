"""How wide texts are, without a font at hand: by the widths of the wider ones among sans-serif
fonts.
"""

SIZE = 12
LINE = 14
_NARROW, _WIDE = frozenset("fijlrtI .,:;|!'()[]-·"), frozenset("mwMWO%@—")
_ELLIPSIS = "…"
#: Where a line may end. The parts are only shown: labels are not parsed.
_DOT = " · "
#: From here on a character is about as wide as it is high.
_LAST_ALPHABET = 0x2E7F


def width(text: str) -> float:
    """At the size of a chart's font."""
    return SIZE * sum(map(_share, text))


def fitted(text: str, room: float) -> str:
    """The text; its beginning with an ellipsis where it is wider than the room."""
    if width(text) <= room:
        return text
    while text and width(text + _ELLIPSIS) > room:
        text = text[:-1]
    return text.rstrip() + _ELLIPSIS


def lines(text: str, room: float) -> list[str]:
    """Broken at its dots where it is too wide."""
    found: list[str] = []
    for part in text.split(_DOT):
        longer = f"{found[-1]}{_DOT}{part}" if found else part
        if found and width(longer) <= room:
            found[-1] = longer
        else:
            found.append(part)
    return [fitted(each, room) for each in found]


def _share(char: str) -> float:
    if char in _NARROW:
        return 0.36
    if char in _WIDE:
        return 0.95
    if ord(char) > _LAST_ALPHABET:
        return 1.0
    return 0.77 if char.isupper() else 0.65
