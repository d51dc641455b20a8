"""JSON and YAML: a list of objects, one per definition."""

import json
from collections.abc import Iterable
from typing import Any

from pgperf.core.exceptions import TransferError
from pgperf.transfer.table import MAX_COLUMNS, MAX_DIGITS, ImportTable, first_duplicate, short

try:
    import yaml
except ImportError:  # an extra: pip install 'pgperf[yaml]'
    yaml = None  # type: ignore[assignment]

#: PyYAML is slow. Each name, value, list and object is one or two events of its parser.
MAX_YAML_BYTES = 512 * 1024
MAX_YAML_EVENTS = 40_000
#: Both are so many times smaller where PyYAML lacks its C library.
WITHOUT_C = 2
_YAML_DEPTH = 100
#: Other plain values are text: YAML's dates, merge keys and the like have no place in JSON.
_YAML_TYPES = ("null", "bool", "int", "float")

Rows = Iterable[dict[str, Any]]


def from_json(text: str) -> Any:
    """Strict JSON: unique names, no NaN. Raises ValueError with the place of the problem."""
    try:
        return json.loads(
            text, object_pairs_hook=_unique, parse_int=_whole_number, parse_constant=_no_constant
        )
    except json.JSONDecodeError as error:
        raise ValueError(f"invalid JSON: {error.msg}, line {error.lineno} column {error.colno}") from None
    except RecursionError:
        raise ValueError("invalid JSON: nested too deeply") from None


def read_json(content: bytes) -> ImportTable:
    try:
        return _table(from_json(decoded(content)))
    except ValueError as error:
        raise TransferError(str(error)) from None


def write_json(rows: Rows) -> bytes:
    return (json.dumps(list(rows), indent=2, ensure_ascii=False) + "\n").encode()


def read_yaml(content: bytes) -> ImportTable:
    if len(content) > (most := _most(MAX_YAML_BYTES)):
        raise TransferError(f"the YAML file is larger than {most // 1024:,} KiB{_why()}: use JSON")
    text = decoded(content)
    try:
        _check_events(text)
        return _table(yaml.load(text, Loader=_loader()))
    except yaml.YAMLError as error:
        raise TransferError(f"invalid YAML: {_where(error)}") from None
    except ValueError as error:
        raise TransferError(f"invalid YAML: {error}") from None


def write_yaml(rows: Rows) -> bytes:
    return yaml.safe_dump(list(rows), sort_keys=False, allow_unicode=True).encode()


def decoded(content: bytes) -> str:
    """The text of a UTF-8 file, with or without a byte order mark."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise TransferError(
            f"not UTF-8 text (byte {error.start + 1:,}): save the file as UTF-8, or correct its suffix"
        ) from None


def _table(data: Any) -> ImportTable:
    if not isinstance(data, list):
        raise TransferError("the file must contain a list of objects, one per definition")
    table = ImportTable(flat=False)
    for number, row in enumerate(data, 1):
        if not isinstance(row, dict) or not all(isinstance(name, str) for name in row):
            raise TransferError(f"row {number}: not an object")
        if len(row) > MAX_COLUMNS:
            raise TransferError(f"row {number}: more than {MAX_COLUMNS} values")
        table.add(number, row)
    return table


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        doubled = first_duplicate(name for name, _ in pairs)
        raise ValueError(f"invalid JSON: {short(doubled)} appears twice in one object")
    return found


def _whole_number(text: str) -> int:
    if len(text) > MAX_DIGITS:
        raise ValueError(f"a number has more than {MAX_DIGITS} digits")
    return int(text)


def _no_constant(name: str) -> Any:
    raise ValueError(f"invalid JSON: {name} is not a JSON number")


def _check_events(text: str) -> None:
    """Refuse costly files before PyYAML builds their values."""
    depth, most = 0, _most(MAX_YAML_EVENTS)
    for number, event in enumerate(yaml.parse(text, Loader=_base())):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _YAML_DEPTH:
            raise yaml.YAMLError("nested too deeply")
        if number > most:
            raise yaml.YAMLError(f"too many values{_why()}: use JSON")
        if problem := _unfit_event(event):
            raise yaml.YAMLError(problem)


def _unfit_event(event: Any) -> str:
    """Why an event is refused; "" if it is not. Aliases can expand a small file."""
    if isinstance(event, yaml.AliasEvent):
        return "aliases (*name) are not allowed"
    return "tags (!name) are not allowed" if getattr(event, "tag", None) else ""


def _most(limit: int) -> int:
    return limit if _in_c() else limit // WITHOUT_C


def _why() -> str:
    """Why the limit is smaller than on other machines; "" if it is not."""
    return "" if _in_c() else ", the limit where PyYAML lacks its C library"


def _in_c() -> bool:
    return _base() is not yaml.SafeLoader


def _base() -> Any:
    """PyYAML's safe loader, in C if available."""
    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _loader() -> Any:
    """A safe loader of JSON's types that refuses duplicate names and long numbers."""

    class Loader(_base()):  # type: ignore[misc]
        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            doubled = first_duplicate(key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode))
            if doubled is not None:
                raise yaml.YAMLError(f"{short(doubled)} appears twice in one object")
            return super().construct_mapping(node, deep)

        def construct_scalar(self, node: Any) -> Any:
            number = node.tag.endswith((":int", ":float"))
            if number and len(node.value) > MAX_DIGITS:
                raise yaml.YAMLError(f"a number has more than {MAX_DIGITS} digits")
            return super().construct_scalar(node)

    Loader.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag.rpartition(":")[2] in _YAML_TYPES]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    return Loader


def _where(error: Any) -> str:
    mark = getattr(error, "problem_mark", None)
    text = getattr(error, "problem", None) or str(error).splitlines()[0]
    return f"{text}, line {mark.line + 1} column {mark.column + 1}" if mark else str(text)
