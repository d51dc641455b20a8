"""A form widget for names of routes: a box for each route of each database, and a line for others."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from pgperf.admin.ordered_choices import in_order


@dataclass(frozen=True)
class RoutesOf:
    """A database and the names of its routes."""

    pk: int
    name: str
    routes: tuple[str, ...]


class RouteBoxes(forms.Widget):
    """Boxes and a text input of the same name; its value is one text. It needs no script.

    Beside boxes the `stored` routes keep their order; without boxes it is the order as typed.

    A script (`benchmark_form.js`) shows the boxes of the chosen database only.
    """

    use_fieldset = True

    def __init__(self, databases: Sequence[RoutesOf], stored: Sequence[str] = (), attrs: Any = None) -> None:
        super().__init__(attrs)
        self.databases = databases
        self.stored = stored if databases else ()

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        words = str(value or "").replace(",", " ").split()
        first = (attrs or {}).get("id", f"id_{name}")
        groups = format_html_join(
            "",
            '<div class="of-database" role="group" data-database="{0}" aria-label="{1}">'
            '<span class="pgperf-under">{1}</span>{2}</div>',
            self._groups(name, first, set(words)),
        )
        known = {route for each in self.databases for route in each.routes}
        return format_html(
            '<div class="checkbox-list pgperf-routes">{}<div class="others"><label for="{}">{}</label> '
            '<input type="text" name="{}" value="{}" id="{}" class="vTextField"></div></div>',
            groups, first, _("Other routes:") if known else _("Names:"), name,
            ", ".join(word for word in words if word not in known), first,
        )  # fmt: skip

    def _groups(self, name: str, first: str, words: Collection[str]) -> Iterator[tuple[str, str, SafeString]]:
        at = 0
        for each in self.databases:
            boxes = [
                (first, at + place, name, route, route in words) for place, route in enumerate(each.routes)
            ]
            at += len(boxes)
            yield str(each.pk), each.name, _boxes(boxes)

    def value_from_datadict(self, data: Any, files: Any, name: str) -> str | None:
        """Each name once."""
        found = data.getlist(name) if hasattr(data, "getlist") else [data.get(name)]
        words = ", ".join(each for each in found if each).replace(",", " ").split()
        return ", ".join(in_order(words, self.stored))

    def value_omitted_from_data(self, data: Any, files: Any, name: str) -> bool:
        return False

    def id_for_label(self, id_: str, index: Any = None) -> str:
        return ""


def _boxes(boxes: Sequence[tuple[str, int, str, str, bool]]) -> SafeString:
    return format_html_join(
        "",
        '<label for="{0}_{1}"><input type="checkbox" name="{2}" value="{3}" id="{0}_{1}"{4}> {3}</label>',
        ((*box, SafeString(" checked") if ticked else "") for *box, ticked in boxes),
    )
