"""Which format a file is, and its reader and writer."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from pgperf.core.exceptions import TransferError
from pgperf.transfer import sheet, tree
from pgperf.transfer.table import MAX_BYTES, Table, short


@dataclass(frozen=True)
class Format:
    """One kind of file. `suffixes` are the ends of its files' names, the usual one first."""

    title: str
    suffixes: tuple[str, ...]
    content_type: str
    read: Callable[[bytes], Table]
    write: Callable[[Iterable[dict[str, Any]]], bytes]


_XLSX_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"

FORMATS: dict[str, Format] = {
    "json": Format("JSON", (".json",), "application/json", tree.read_json, tree.write_json),
    "csv": Format("CSV", (".csv",), "text/csv; charset=utf-8", sheet.read_csv, sheet.write_csv),
    "xlsx": Format("XLSX", (".xlsx",), _XLSX_TYPE, sheet.read_xlsx, sheet.write_xlsx),
}
if tree.yaml is not None:
    FORMATS["yaml"] = Format("YAML", (".yaml", ".yml"), "application/yaml", tree.read_yaml, tree.write_yaml)


def suffixes() -> list[str]:
    return [suffix for entry in FORMATS.values() for suffix in entry.suffixes]


def read(name: str, content: bytes) -> Table:
    """The rows of a file, by the end of its name. Raises TransferError saying what is wrong and where."""
    found = next((entry for entry in FORMATS.values() if name.lower().endswith(entry.suffixes)), None)
    if found is None:
        raise TransferError(f"the name {short(name)} must end in {', '.join(suffixes())}")
    if len(content) > MAX_BYTES:
        raise TransferError(f"more than {MAX_BYTES // 2**20} MiB")
    table = found.read(content)
    if not table.rows:
        raise TransferError("the file has no rows")
    return table


def write(kind: str, rows: Iterable[dict[str, Any]]) -> bytes:
    """A file of that kind (a key of FORMATS). Raises TransferError where a cell cannot hold its value."""
    return FORMATS[kind].write(rows)
