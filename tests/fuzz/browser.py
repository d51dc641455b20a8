"""The forms of a page with their fields and values, as a browser reads them."""

from html.parser import HTMLParser

#: The permitted status codes for any input; any other is a finding.
ANSWERS = {200, 301, 302, 400, 403, 404, 405}

Fields = dict[str, list[str]]


class _Reader(HTMLParser):
    """Collects the fields of every POST form, without buttons and files."""

    def __init__(self) -> None:
        super().__init__()
        self.forms: list[Fields] = []
        self.fields: Fields = {}
        self._select = self._textarea = ""

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attributes}
        if tag == "form":
            self.fields = {}
            if given.get("method", "").lower() == "post":
                self.forms.append(self.fields)
        elif tag == "input":
            self._input(given)
        elif tag in ("select", "textarea") and given.get("name"):
            self.fields.setdefault(given["name"], [])
            setattr(self, f"_{tag}", given["name"])
        elif tag == "option" and self._select and "selected" in given:
            self.fields[self._select].append(given.get("value", ""))

    def _input(self, given: dict[str, str]) -> None:
        kind, name = given.get("type", "text"), given.get("name", "")
        if not name or kind in ("submit", "button", "file", "image", "reset"):
            return
        values = self.fields.setdefault(name, [])
        if kind not in ("checkbox", "radio") or "checked" in given:
            values.append(given.get("value", "on" if kind == "checkbox" else ""))

    def handle_data(self, data: str) -> None:
        if self._textarea:
            self.fields[self._textarea].append(data.removeprefix("\n"))

    def handle_endtag(self, tag: str) -> None:
        if tag == "select":
            self._select = ""
        elif tag == "textarea":
            self._textarea = ""


def form(page: str, holding: str) -> Fields:
    """The POST form of the page that has a field with this name."""
    reader = _Reader()
    reader.feed(page)
    return next(fields for fields in reader.forms if holding in fields)
