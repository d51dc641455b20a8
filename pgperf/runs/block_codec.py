"""The variants of one block as zlib-compressed JSON: what a BlockResult row stores. Standard
library only.

The JSON is a list with one object per variant, whose slices are columns. The variants of a block
are compressed together, because most of their text is alike. Floats come back bit for bit; null
stays null.
"""

import json
import zlib
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from itertools import accumulate, pairwise
from typing import Any

from pgperf.core.exceptions import UnreadableBlock
from pgperf.core.records import DurationSums, SliceRecord, Variant, VariantBlock

Columns = dict[str, list[Any]]


def encode(blocks: Iterable[VariantBlock], plain: Callable[[Any], Any]) -> bytes:
    """The bytes of a block's variants. `plain` replaces the numbers that JSON does not have.

    Raises ValueError for NaN and infinity.
    """
    variants = [_variant(plain(asdict(block)), block) for block in blocks]
    text = json.dumps(variants, separators=(",", ":"), allow_nan=False, ensure_ascii=False)
    return zlib.compress(text.encode(), 9)


def decode(data: bytes) -> list[VariantBlock]:
    """The block's variants as they were measured. Raises UnreadableBlock for damaged bytes."""
    try:
        return [_block(variant) for variant in json.loads(zlib.decompress(data))]
    except (zlib.error, ValueError, KeyError, TypeError) as error:
        raise UnreadableBlock("block: its stored bytes are damaged; restore them from a backup") from error


def _variant(values: dict[str, Any], block: VariantBlock) -> dict[str, Any]:
    phases = {
        name: {**values["phases"][name], "histogram": b64encode(sums.histogram).decode()}
        for name, sums in block.phases.items()
    }
    histogram = b64encode(block.histogram).decode()
    return {**values, "slices": _columns(values["slices"]), "histogram": histogram, "phases": phases}


def _block(values: dict[str, Any]) -> VariantBlock:
    slices = tuple(SliceRecord(**piece) for piece in _rows(values["slices"]))
    phases = {
        name: DurationSums(**{**sums, "histogram": b64decode(sums["histogram"])})
        for name, sums in values.get("phases", {}).items()
    }
    made = {
        "variant": Variant(**values["variant"]),
        "slices": slices,
        "histogram": b64decode(values["histogram"]),
        "phases": phases,
    }
    return VariantBlock(**{**values, **made})


def _columns(slices: Sequence[dict[str, Any]]) -> Columns:
    """Start times become steps; the throughput is left out where its formula gives it to the last
    bit.
    """
    columns = {name: [piece[name] for piece in slices] for name in (slices[0] if slices else ())}
    if not columns:
        return {}
    columns["started_ns"] = _steps(columns["started_ns"])
    if columns["ops_per_s"] == _throughputs(columns):
        del columns["ops_per_s"]
    return columns


def _rows(columns: Columns) -> list[dict[str, Any]]:
    if not columns:
        return []
    full = {"ops_per_s": _throughputs(columns), **columns}
    full["started_ns"] = list(accumulate(full["started_ns"]))
    return [dict(zip(full, values, strict=True)) for values in zip(*full.values(), strict=True)]


def _steps(values: list[int]) -> list[int]:
    """The first value, then the difference of each to the one before it."""
    return values[:1] + [later - earlier for earlier, later in pairwise(values)]


def _throughputs(columns: Columns) -> list[float]:
    """The slices' throughput by the runner's formula, operations per second."""
    pairs = zip(columns["ops"], columns["window_ns"], strict=True)
    return [ops / window_ns * 1e9 if window_ns else 0.0 for ops, window_ns in pairs]
