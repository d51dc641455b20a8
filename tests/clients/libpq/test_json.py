"""The C client's JSON reader and Python's agree, on what they accept and on what it means."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.clients.libpq.programs import compile_program

scalars = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
    max_leaves=20,
)
# Text that is nearly JSON, so that refusals are reached on every path.
nearly = st.lists(
    st.sampled_from(
        [*'{}[]:,"\\ -+.eE0129abfnrtu', "true", "null", "\\u", "d83d", "\\ude00", "\x00", "ä", "😀"]
    ),
    max_size=12,
).map(lambda pieces: "".join(pieces).encode())


@pytest.fixture(scope="module")
def dump(modules: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    program = compile_program("jsondump", tmp_path_factory.mktemp("jsondump"), modules)
    with subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin
        assert process.stdout
        stdin, stdout = process.stdin, process.stdout

        def ask(line: bytes) -> str:
            stdin.write(line + b"\n")
            stdin.flush()
            return stdout.readline().decode().removesuffix("\n")

        yield ask
        stdin.close()
        assert process.wait(10) == 0


def python_reading(line: bytes) -> Any:
    """What Python reads, where the reader is as strict as the standard: no NaN, no lone surrogates,
    no BOM.
    """

    def refuse(name: str) -> None:
        raise ValueError(name)

    value = json.loads(line.decode(), parse_constant=refuse)
    json.dumps(value, ensure_ascii=False).encode()
    return value


@given(values, st.booleans())
def test_json_written_by_python_is_read_back(dump: Any, value: Any, escaped: bool) -> None:
    assert json.loads(dump(json.dumps(value, ensure_ascii=escaped).encode())) == value


@given(nearly | st.binary(max_size=40).filter(lambda line: b"\n" not in line))
@example(b'"\\ud83d\\ude00"')
@example(b'"\\ude00"')
@example(b"-")
@example(b"1e5")
def test_both_readers_accept_and_refuse_the_same_texts(dump: Any, line: bytes) -> None:
    answer = dump(line)
    try:
        expected = python_reading(line)
    except ValueError:
        assert answer == "refused"
    else:
        assert json.loads(answer) == expected
