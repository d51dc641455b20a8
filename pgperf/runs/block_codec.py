"""A variant's block in a few hundred bytes: what BlockResult keeps of it. Standard library only.

The slices become columns, a column of one value is written once, the text is JSON, and the text is deflated. JSON
reads alike on every machine and in every database; floats come back bit for bit, null stays null, and a field that a
later version adds is one more key. The dictionaries below make the names of the fields cost next to nothing. They are
part of the format: none ever changes; another one gets another first byte.
"""

import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from itertools import accumulate, pairwise
from typing import Any

from pgperf.core.exceptions import UnreadableBlock
from pgperf.core.records import SliceRecord, Variant, VariantBlock

Row = dict[str, Any]
Columns = dict[str, Any]

_FORMAT = 2
_FIRST_DICTIONARY = (
    b'{"versions":{"libpq":"18.","client":"0.1.0","python":"3.1","psycopg":"3.","psycopg2":"2.9.","django":"5.2.",'
    b'"driver":"asyncpg"},"fake","http","together","scheduler","per_operation","pool","prepared","extended","tcp",'
    b'"disturbed":"a client began after the common window had opened",'
    b'"cold_us":{"connect":null,"first":null,"next_ten":null,"other_query_first":null,"other_query_second":null,'
    b'"second":null,"startup":null},"latency_max_ns":,"latency_min_ns":,"latency_sum_ns":,"latency_sum_sq":,'
    b'"rows_per_op":1,"slices":{"client_ns":[],"disturbed":"","lead_in_ops":[],"ops":[],"pooler_ns":0,"position":[],'
    b'"round":[0,1,2,3,4,5,6,7,8,9],"rows":[],"server_ns":[],"started_ns":[],"sys_ns":[],"us_per_op":[],"user_ns":[],'
    b'"window_ns":[]},"count":10,"variant":{"clients":1,"connect":"persistent","control":0,"layer":"libpq","psycopg2",'
    b'"psycopg","django_cursor","django_orm","mode":"simple","placement":"apart","route":"pgbouncer","socket",'
    b'"workload":"site-by-domain"},"block":0,"cohort":0,'
)
_SECOND_DICTIONARY = (
    b'"source":"cgroup2","source":"idle","diagnostics":{},"top":{},"control",'
    b'{"cpu_account":{"cpus":2,"elapsed_ns":,"ticks_and_switches":{"client":{"involuntary":,"system":,"user":,"voluntary":},'
    b'"pooler":{"involuntary":0,"system":0,"user":0,"voluntary":0},"server":null},"host_ns":,"others_ns":,"ours_ns":,'
    b'"source":"cgroup"},"auxiliary_ns":[],"client_busiest_ns":[],"client_wait_ns":[],"elapsed_ns":[],"host_ns":[],'
    b'"iowait_ns":0,"pooler_wait_ns":0,"runner_ns":[],"server_busiest_ns":[],"server_wait_ns":[],"steal_ns":[0,10000000,'
)
#: Where a role is one process it is the busiest, and its column is not written.
_BUSIEST = {"client_busiest_ns": "client_ns", "server_busiest_ns": "server_ns"}
_DICTIONARIES = {1: _FIRST_DICTIONARY, 2: _SECOND_DICTIONARY + _FIRST_DICTIONARY}


def pack(data: Mapping[str, Any]) -> bytes:
    """The bytes of a block's plain data, whose `slices` are mappings with the same keys. Raises ValueError for NaN."""
    slices = list(data["slices"])
    body = {**data, "slices": _columns(slices), "count": len(slices)}
    text = json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=False)
    deflate = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS, 9, zdict=_DICTIONARIES[_FORMAT])
    return bytes([_FORMAT]) + deflate.compress(text.encode()) + deflate.flush()


def unpack(packed: bytes) -> Row:
    """What was packed. Raises UnreadableBlock for the format of a later pgperf and for broken bytes."""
    dictionary = _DICTIONARIES.get(packed[0]) if packed else None
    if dictionary is None:
        raise UnreadableBlock("block: written by a later pgperf; upgrade to read it")
    try:
        inflate = zlib.decompressobj(-zlib.MAX_WBITS, zdict=dictionary)
        body = json.loads(inflate.decompress(packed[1:]) + inflate.flush())
    except (zlib.error, ValueError) as error:
        raise UnreadableBlock("block: its stored bytes are broken; restore them from a backup") from error
    count = body.pop("count")
    return {**body, "slices": _rows(body["slices"], count)}


def pack_block(block: VariantBlock, plain: Callable[[Any], Any]) -> bytes:
    """The block without its histogram. `plain` makes its numbers such as JSON has."""
    data = plain(asdict(block))
    del data["histogram"]
    return pack(data)


def unpack_block(packed: bytes, histogram: bytes) -> VariantBlock:
    """The block as it was measured."""
    data = unpack(packed)
    data["variant"] = Variant(**data["variant"])
    data["slices"] = tuple(SliceRecord(**piece) for piece in data["slices"])
    return VariantBlock(**data, histogram=histogram)


def _columns(slices: Sequence[Mapping[str, Any]]) -> Columns:
    names = list(slices[0]) if slices else []
    columns: Columns = {name: [piece[name] for piece in slices] for name in names}
    if "started_ns" in columns:
        columns["started_ns"] = _steps(columns["started_ns"])
    if columns.get("ops_per_s") == _throughputs(columns):
        del columns["ops_per_s"]
    for busiest, role in _BUSIEST.items():
        if "elapsed_ns" in columns and columns.get(busiest) == columns.get(role):
            columns.pop(busiest, None)
    return {name: _once(values) for name, values in columns.items()}


def _rows(columns: Columns, count: int) -> list[Row]:
    full = {name: value if isinstance(value, list) else [value] * count for name, value in columns.items()}
    if "started_ns" in full:
        full["started_ns"] = list(accumulate(full["started_ns"]))
    if "ops_per_s" not in full and {"ops", "window_ns"} <= full.keys():
        full["ops_per_s"] = _throughputs(full)
    if "elapsed_ns" in full:
        full = {**{busiest: full[role] for busiest, role in _BUSIEST.items() if role in full}, **full}
    return [{name: values[at] for name, values in full.items()} for at in range(count)]


def _steps(values: list[int]) -> list[int]:
    """The first value, then what each adds to the one before."""
    return values[:1] + [later - earlier for earlier, later in pairwise(values)]


def _throughputs(columns: Columns) -> list[float]:
    """The slices' throughput by the runner's own formula, to the last bit."""
    pairs = zip(columns.get("ops", []), columns.get("window_ns", []), strict=True)
    return [ops / window_ns * 1e9 if window_ns else 0.0 for ops, window_ns in pairs]


def _once(values: list[Any]) -> Any:
    """A column of one value, and of one type, as that value."""
    first = values[0]
    return first if all(type(value) is type(first) and value == first for value in values) else values
