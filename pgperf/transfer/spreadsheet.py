"""Escapes text that the XML of a worksheet cannot hold, and restores it."""

import re

# XML 1.0 cannot hold control characters and turns a carriage return into a newline. An "x" before
# four hexadecimal digits is escaped too, because a reader would take it for an escape.
_XML_UNSAFE = re.compile(r"x(?=[0-9A-Fa-f]{4})|[\x00-\x08\x0b-\x1f\ufffe\uffff]")
_XML_ESCAPE = re.compile(r"_x([0-9A-Fa-f]{4})_")


def to_xml(text: str) -> str:
    """Escape characters as _xHHHH_, as the XLSX format specifies."""
    return _XML_UNSAFE.sub(lambda found: f"_x{ord(found[0]):04X}_", text)


def from_xml(text: str) -> str:
    """Undo `to_xml`."""
    return _XML_ESCAPE.sub(lambda found: chr(int(found[1], 16)), text)
