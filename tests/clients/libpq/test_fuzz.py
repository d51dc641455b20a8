"""The C client with mutated conversations and failing calls; `python -m soak.fuzz_c` is the long
version.
"""

import shutil
import subprocess
from pathlib import Path

import pytest

from pgperf.install.c_client import SOURCE_DIR
from soak import fuzz_c

MUTANTS = 1500


def replay(program: Path, inputs: list[Path]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [program, *inputs], capture_output=True, text=True, errors="replace", timeout=300, check=False
    )


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    everything = [*fuzz_c.corpus(), *fuzz_c.mutants(MUTANTS, seed=1)]
    return fuzz_c.write_inputs(everything, tmp_path_factory.mktemp("fuzz") / "inputs")


def test_every_conversation_ends_as_the_protocol_says(inputs: list[Path], tmp_path: Path) -> None:
    done = replay(fuzz_c.build_replayer(tmp_path), inputs)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stderr.count(str(inputs[0].parent)) == len(inputs)  # each was run, and named before


@pytest.mark.parametrize(
    ("file", "right", "wrong", "seen"),
    [
        ("line.c", "copy[bytes - 1] = '\\0';", "", "heap-buffer-overflow"),
        ("failure.c", "rest = found + strlen(secret);", "rest = found; break;", "is_canary"),
    ],
)
def test_the_harness_detects_a_seeded_mistake(
    inputs: list[Path], tmp_path: Path, file: str, right: str, wrong: str, seen: str
) -> None:
    sources = tmp_path / "sources"
    shutil.copytree(SOURCE_DIR, sources)
    text = (sources / file).read_text()
    assert right in text
    (sources / file).write_text(text.replace(right, wrong))
    done = replay(fuzz_c.build_replayer(tmp_path, sources), inputs)
    assert done.returncode != 0
    assert seen in done.stderr


def test_every_failed_call_ends_with_an_allowed_exit_code(tmp_path: Path) -> None:
    faults = fuzz_c.fail_every_call(fuzz_c.build_faulty(tmp_path), tmp_path)
    assert {fault.call for fault in faults} >= {
        "malloc",
        "realloc",
        "strndup",
        "open_memstream",
        "mmap",
        "write",
    }
    assert [fault for fault in faults if not fault.clean] == []
