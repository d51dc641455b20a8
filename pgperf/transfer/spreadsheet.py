"""Text in cells of a worksheet: what XML cannot hold written out, and exactly what it was on its way back in."""

import re

# What XML 1.0 cannot hold or would change: control characters, and the carriage return, which it turns into a newline.
# An "x" before four hexadecimal digits is written out too, for it would be taken for such an escape.
_XML_UNSAFE = re.compile(r"x(?=[0-9A-Fa-f]{4})|[\x00-\x08\x0b-\x1f\ufffe\uffff]")
_XML_ESCAPE = re.compile(r"_x([0-9A-Fa-f]{4})_")


def to_xml(text: str) -> str:
    """The text with what a worksheet cannot hold written as _xHHHH_, as the format lays down."""
    return _XML_UNSAFE.sub(lambda found: f"_x{ord(found[0]):04X}_", text)


def from_xml(text: str) -> str:
    """The text that `to_xml` was given."""
    return _XML_ESCAPE.sub(lambda found: chr(int(found[1], 16)), text)
