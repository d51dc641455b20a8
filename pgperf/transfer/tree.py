"""JSON and YAML: a list of objects, one for each row."""

import json
from collections.abc import Iterable
from typing import Any

from pgperf.core.exceptions import TransferError
from pgperf.transfer.table import MAX_COLUMNS, Table, short

try:
    import yaml
except ImportError:  # an extra: pip install 'pgperf[yaml]'
    yaml = None  # type: ignore[assignment]

#: PyYAML reads slowly; every name, value, list and object is an event or two of its parser.
MAX_YAML_BYTES = 1024 * 1024
MAX_YAML_EVENTS = 150_000
_YAML_DEPTH = 100

Rows = Iterable[dict[str, Any]]


def from_json(text: str) -> Any:
    """Strict JSON: names once, no NaN. Raises ValueError saying what is wrong and where."""
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise ValueError(f"no JSON: {error.msg}, line {error.lineno} column {error.colno}") from None
    except RecursionError:
        raise ValueError("no JSON that can be read: nested too deep") from None


def read_json(content: bytes) -> Table:
    try:
        return _table(from_json(decoded(content)))
    except ValueError as error:
        raise TransferError(str(error)) from None


def write_json(rows: Rows) -> bytes:
    return (json.dumps(list(rows), indent=2, ensure_ascii=False) + "\n").encode()


def read_yaml(content: bytes) -> Table:
    if len(content) > MAX_YAML_BYTES:
        raise TransferError(f"YAML of more than {MAX_YAML_BYTES // 1024:,} KiB: use JSON")
    text = decoded(content)
    try:
        _check_events(text)
        return _table(yaml.load(text, Loader=_loader()))
    except yaml.YAMLError as error:
        raise TransferError(f"no YAML: {_where(error)}") from None
    except (RecursionError, ValueError) as error:
        deep = isinstance(error, RecursionError)
        raise TransferError(f"no YAML: {'nested too deep' if deep else error}") from None


def write_yaml(rows: Rows) -> bytes:
    return yaml.safe_dump(list(rows), sort_keys=False, allow_unicode=True).encode()


def decoded(content: bytes) -> str:
    """UTF-8 with or without the mark that spreadsheets set before it."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise TransferError(
            f"no UTF-8 text (byte {error.start + 1:,}): save the file as UTF-8, or is it of another format?"
        ) from None


def _table(data: Any) -> Table:
    if not isinstance(data, list):
        raise TransferError("the file must hold a list of objects, one for each row")
    table = Table(flat=False)
    for number, row in enumerate(data, 1):
        if not isinstance(row, dict) or not all(isinstance(name, str) for name in row):
            raise TransferError(f"row {number}: no object with named values")
        if len(row) > MAX_COLUMNS:
            raise TransferError(f"row {number}: more than {MAX_COLUMNS} values")
        table.add(number, row)
    return table


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        doubled = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"no JSON that can be read: {short(doubled)} is there twice in one object")
    return found


def _no_constant(name: str) -> Any:
    raise ValueError(f"no JSON: {name} is no number of JSON's")


def _check_events(text: str) -> None:
    """No aliases, which can blow a small file up, and not too much of anything."""
    depth = 0
    for number, event in enumerate(yaml.parse(text, Loader=_base())):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _YAML_DEPTH:
            raise yaml.YAMLError("nested too deep")
        if isinstance(event, yaml.AliasEvent):
            raise yaml.YAMLError("aliases (*name) are not taken")
        if number > MAX_YAML_EVENTS:
            raise yaml.YAMLError("too many values: use JSON")


def _base() -> Any:
    """PyYAML's own, in C where it was built so."""
    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _loader() -> Any:
    """YAML's plain part: no times, no name twice in one object."""

    class Loader(_base()):  # type: ignore[misc]
        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            names = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
            if len(set(names)) < len(names):
                doubled = next(name for name in names if names.count(name) > 1)
                raise yaml.YAMLError(f"{short(doubled)} is there twice in one object")
            return super().construct_mapping(node, deep)

    Loader.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":timestamp")]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    return Loader


def _where(error: Any) -> str:
    mark = getattr(error, "problem_mark", None)
    text = getattr(error, "problem", None) or str(error).splitlines()[0]
    return f"{text}, line {mark.line + 1} column {mark.column + 1}" if mark else str(text)
