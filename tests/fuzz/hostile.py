"""Hostile inputs: texts, numbers, JSON, bytes and query strings."""

import json
from typing import Any
from urllib.parse import quote, urlencode

from hypothesis import strategies as st

#: Without lone surrogates, which UTF-8 cannot encode and no browser can send.
CHARACTERS = st.characters(exclude_categories=["Cs"])
CLASSICS = (
    "", " ", "\x00", "a\x00b", "\r\n", "\t", "0", "-1", "-0", "1e400", "NaN", "Infinity", "9" * 30, "9" * 5000, "²",
    "٣",
    "1,1", ",,,", "1 8", "null", "true", "[]", "{}", "[[]]", '["\\u0000"]', '["\\ud800"]', "[1e400]", "[NaN]", '{"a":',
    "[" * 2000, "[" * 500 + "]" * 500, '["' + "x" * 5000 + '"]', "=1+1", "@SUM(A1)", "+cmd|' /C calc'!A0", "-2+3",
    "host=evil.example dbname=postgres", "postgresql://u:p@evil.example/db", "socket", "socket,tcp", "/tmp", "/../etc",
    "localhost,evil.example", "127.1", "[::1]", "xn--e1afmkfd", "пример", "alias:default", "env:HOME",
    "env:PGPERF_SECRET_", "file:../../etc/passwd", "alias:" + "x" * 300, "select 1; drop table x", "select %s %s",
    "select %", "select %(name)s", "\\! id", "<script>alert(1)</script>", "{{ 7*7 }}", "{% debug %}", "%s" * 50,
    "\u202egnp.exe", "\u2028", "\ufeffname", "e\u0301" * 60, "x" * 70_000, "libpq", "prepared", "apart", "on", "1",
)  # fmt: skip

WORDS = st.text(CHARACTERS, max_size=40) | st.sampled_from(CLASSICS)
NUMBERS = st.integers().map(str) | st.floats().map(str) | st.sampled_from(CLASSICS)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner, max_size=4),
    max_leaves=12,
)
JSON_TEXTS = JSON_VALUES.map(json.dumps)
VALUES = st.one_of(WORDS, NUMBERS, JSON_TEXTS)
_PARTS = ("x", "9", "1,", "1 8 ", "socket,", "[", "[],", '"a",', '{"a":', '{"a":1},', '"k":1,', "'", '"', "(", "$a$",
          "/*", "--\n", "\n", "é", "%s", "\\", "a.", "/", "a__b,")  # fmt: skip
#: Long texts of one repeated part, in brackets or not.
LONG = st.builds(
    lambda part, frame, most: frame[0] + part * (most // len(part.encode())) + frame[1],
    st.sampled_from(_PARTS), st.sampled_from(["[]", "{}", '""', ("", "")]), st.sampled_from([10_000, 250_000]),
)  # fmt: skip


def query_strings(names: tuple[str, ...]) -> st.SearchStrategy[str]:
    """Query strings of these and other names, some with invalid UTF-8."""
    pairs = st.lists(st.tuples(st.sampled_from(names) | WORDS, VALUES | _ORDERS), max_size=4)
    broken = st.sampled_from(
        ("%ff=%fe", "q=%00", "p=%c3%28", "&&&", "=", "q", "%", "o=%zz", "e=1", "_popup=1", "_to_field=x")
    )
    return st.builds(
        lambda whole, tail: "&".join(filter(None, (urlencode(whole), tail))), pairs, st.just("") | broken
    )


_ORDERS = st.lists(st.integers(-99, 99).map(str), min_size=1, max_size=4).map(".".join)


def path_segments() -> st.SearchStrategy[str]:
    """A path segment: invalid IDs, and names with ".."."""
    return (VALUES | st.integers(0, 2**70).map(str)).map(lambda text: quote(text[:300], safe="")).filter(bool)


def forged(genuine: Any) -> st.SearchStrategy[Any]:
    """The value, or another one, or its parts forged."""
    other = st.just(genuine) | JSON_VALUES | st.sampled_from(["x" * 10**6, [0] * 20_000, 2**70, -1, True])
    if isinstance(genuine, dict) and genuine:
        return st.fixed_dictionaries({name: forged(part) for name, part in genuine.items()}) | other
    if isinstance(genuine, list) and genuine:
        return st.tuples(*map(forged, genuine)).map(list) | other
    return other


def spliced(data: bytes, at: int, piece: bytes, dropped: int) -> bytes:
    """`data` with `dropped` bytes replaced by `piece`; `at` wraps around."""
    at %= len(data) + 1
    return data[:at] + piece + data[at + dropped :]


def pick(number: int, among: list[Any]) -> Any:
    return among[number % len(among)]
