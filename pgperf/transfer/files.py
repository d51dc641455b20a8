"""File formats, each with its reader and writer."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from pgperf.core.exceptions import TransferError
from pgperf.transfer import sheet, tree
from pgperf.transfer.table import MAX_BYTES, ImportTable, clipped, short


@dataclass(frozen=True)
class Format:
    """One file format. `suffixes` are its file name suffixes, the preferred one first."""

    title: str
    suffixes: tuple[str, ...]
    content_type: str
    read: Callable[[bytes], ImportTable]
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


def read(name: str, content: bytes) -> ImportTable:
    """Read a file in the format of its suffix.

    Raises TransferError with the place of the problem.
    """
    try:
        return _read(name, content)
    except TransferError as error:
        raise TransferError(clipped(str(error))) from None


def _read(name: str, content: bytes) -> ImportTable:
    found = next((entry for entry in FORMATS.values() if name.lower().endswith(entry.suffixes)), None)
    if found is None:
        raise TransferError(f"the file name {short(name)} must end in {', '.join(suffixes())}")
    if len(content) > MAX_BYTES:
        raise TransferError(f"the file is larger than {MAX_BYTES // 2**20} MiB")
    table = found.read(content)
    if not table.rows:
        raise TransferError("the file has no rows")
    return table


def write(kind: str, rows: Iterable[dict[str, Any]]) -> bytes:
    """The rows as a file of `kind`, a key of FORMATS.

    Raises TransferError if a value is too long.
    """
    return FORMATS[kind].write(rows)
