"""SVG elements as text in which every attribute and every text is escaped.

What marks have in common, such as a colour, is said once, by the group around them: a chart has up to
a thousand marks.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from django.utils.html import conditional_escape, escape
from django.utils.safestring import SafeString, mark_safe

Colour = Mapping[str, str] | str
#: x and y of the begin and of the end of a straight line.
Piece = tuple[float, float, float, float]

#: The variables of pgperf.css have such names; a measured server may choose other ones.
_NAME = re.compile(r"[A-Za-z0-9_-]+")
_HEX = re.compile(r"#[0-9a-f]{6}", re.IGNORECASE)
_OTHER = "var(--pgperf-other)"
#: Points of a shape around (0, 0), a unit wide to each side.
_CORNERS: dict[str, tuple[tuple[float, float], ...]] = {
    "rect": ((-0.85, -0.85), (0.85, -0.85), (0.85, 0.85), (-0.85, 0.85)),
    "triangle": ((0, -1), (1, 0.8), (-1, 0.8)),
    "rectRot": ((0, -1.15), (1.15, 0), (0, 1.15), (-1.15, 0)),
}
#: Of series in their order, as in charts that scripts draw.
SHAPES = ("circle", "rect", "triangle", "rectRot")


def element(tag: str, *inside: str, **attributes: object) -> SafeString:
    """`class_` is the attribute class and `stroke_width` is stroke-width; None leaves one out."""
    written = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{_written(value)}"'
        for name, value in attributes.items()
        if value is not None
    )
    if not inside:
        return mark_safe(f"<{tag}{written}/>")
    return mark_safe(f"<{tag}{written}>{joined(inside)}</{tag}>")


def joined(parts: Iterable[str]) -> SafeString:
    """Elements one after the other."""
    return mark_safe("".join(map(conditional_escape, parts)))


def tinted(colour: Colour) -> str:
    """A style that gives the colour to `.tinted` and `.lined`, there or inside, on light and on dark
    pages.
    """
    if isinstance(colour, str):
        return f"--tint:var(--pgperf-{colour},{_OTHER})" if _NAME.fullmatch(colour) else f"--tint:{_OTHER}"
    light, dark = (_hex(colour.get(scheme, "")) for scheme in ("light", "dark"))
    return f"--light:{light};--dark:{dark}"


def faintness(series: Mapping[str, Any]) -> str | None:
    """The opacity of a series: half of it for each `tint`, None for the first of its colour."""
    return str(0.5 ** series["tint"]) if series.get("tint") else None


def group(inside: Iterable[str], **attributes: object) -> SafeString:
    """Elements with the attributes that they have in common; "" without any element."""
    found = tuple(inside)
    return element("g", *found, **attributes) if found else joined(())


def by_colour(kind: str, marks: Iterable[tuple[Colour, str]]) -> Iterator[SafeString]:
    """A group for the marks of each colour, in the order of the first ones. `kind`: CSS classes."""
    found: dict[str, list[str]] = {}
    for colour, each in marks:
        found.setdefault(tinted(colour), []).append(each)
    for style, own in found.items():
        yield group(own, class_=kind, style=style)


def bar(
    left: float, right: float, top: float, height: float, *inside: str, **attributes: object
) -> SafeString:
    """A rectangle between two x in any order."""
    x, width = min(left, right), abs(right - left)
    return element("rect", *inside, x=x, y=top, width=width, height=height, **attributes)


def lines(pieces: Iterable[Piece], kind: str) -> SafeString:
    """Straight lines as one element; "" without any. `kind`: CSS classes."""
    drawn = "".join(f"M{_number(x1)} {_number(y1)}L{_number(x2)} {_number(y2)}" for x1, y1, x2, y2 in pieces)
    return element("path", d=drawn, class_=kind) if drawn else joined(())


def words(x: float, y: float, text: str, **attributes: object) -> SafeString:
    return element("text", str(text), x=x, y=y, **attributes)


def mark(shape: str, x: float, y: float, size: float, **attributes: object) -> SafeString:
    """A circle, or one of the shapes with corners, around a point."""
    if shape not in _CORNERS:
        return element("circle", cx=x, cy=y, r=size, **attributes)
    corners = [(x + size * right, y + size * down) for right, down in _CORNERS[shape]]
    return element("polygon", points=points(corners), **attributes)


def points(places: Iterable[tuple[float, float]]) -> str:
    return " ".join(f"{_number(x)},{_number(y)}" for x, y in places)


def drawing(width: float, height: float, label: str, inside: Iterable[str]) -> SafeString:
    """The chart as one element; `label` is its text alternative."""
    return element(
        "svg", *inside, class_="pgperf-svg", viewBox=f"0 0 {_number(width)} {_number(height)}", role="img",
        aria_label=label,
    )  # fmt: skip


def _hex(colour: str) -> str:
    return colour if _HEX.fullmatch(colour) else _OTHER


def _written(value: object) -> str:
    return _number(value) if isinstance(value, int | float) else escape(value)


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
