"""Compiles the C client with the installed compiler and libpq (standard library only)."""

import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from pgperf.core.exceptions import LayerUnavailable
from pgperf.install.build_dir import make
from pgperf.install.launch import C_CLIENT

SOURCE_DIR = Path(__file__).parent.parent / "clients" / "libpq"
FLAGS = ("-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror")
SANITIZERS = ("-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
COMPILE_SECONDS = 120


@dataclass(frozen=True)
class BuildResult:
    """A compiled client: its path, the libpq it loads (e.g. "18.6"), and the output of the build."""

    path: Path
    libpq_version: str
    log: str


def build(build_dir: str | Path, cc: str = "cc", pg_config: str = "", sanitize: bool = False) -> BuildResult:
    """Compiles the C client into `build_dir`, replacing the one there in one step.

    `cc` is a command, `pg_config` the program of the libpq to link to ("" looks on PATH);
    `sanitize` adds ASan and UBSan, for tests. Raises LayerUnavailable, saying what to install, when
    something is missing or does not work.
    """
    compiler = _compiler(cc)
    pg_config = _pg_config(pg_config)
    folder = make(build_dir)
    handle, unfinished = tempfile.mkstemp(prefix=f".{C_CLIENT}-", dir=folder)
    os.close(handle)
    try:
        log = _compile(compiler, pg_config, unfinished, sanitize)
        version = _loaded_version(unfinished)
        path = folder / C_CLIENT
        os.chmod(unfinished, 0o755)
        os.replace(unfinished, path)
    finally:
        Path(unfinished).unlink(missing_ok=True)
    return BuildResult(path, version, log.replace(unfinished, str(path)))


def command(compiler: str, pg_config: str, output: str, sanitize: bool = False) -> list[str]:
    """The argv that compiles the client.

    The run path makes the libpq built against the one that is loaded.
    """
    include_dir, lib_dir = _ask(pg_config, "--includedir"), _ask(pg_config, "--libdir")
    sources = sorted(str(path) for path in SOURCE_DIR.glob("*.c"))
    flags = [*FLAGS, *SANITIZERS] if sanitize else [*FLAGS]
    link = [f"-L{lib_dir}", f"-Wl,-rpath,{lib_dir}", "-Wl,--disable-new-dtags", "-lpq", "-lm"]
    return [compiler, *flags, "-isystem", include_dir, "-o", output, *sources, *link]


def _compiler(cc: str) -> str:
    found = shutil.which(cc)
    if not found:
        raise LayerUnavailable(
            f"no C compiler: {cc!r} is not a program here; install one (Debian: apt install gcc libc6-dev) "
            "or name yours in PGPERF['CC']"
        )
    return found


def _pg_config(name: str) -> str:
    found = shutil.which(name or "pg_config")
    if not found:
        raise LayerUnavailable(
            f"no libpq to link to: {name or 'pg_config'!r} is not a program here; install libpq's headers "
            "(Debian: apt install libpq-dev) or name a pg_config in PGPERF['PG_CONFIG']"
        )
    return found


def _ask(pg_config: str, option: str) -> str:
    done = _run([pg_config, option])
    answer = done.stdout.strip()
    if done.returncode or not answer:
        raise LayerUnavailable(f"{pg_config} {option} gave no answer: {done.stdout.strip()[-500:]}")
    return answer


def _compile(compiler: str, pg_config: str, output: str, sanitize: bool) -> str:
    if not Path(_ask(pg_config, "--includedir"), "libpq-fe.h").is_file():
        raise LayerUnavailable(
            f"{pg_config} names a folder without libpq-fe.h; install libpq's headers (Debian: apt install libpq-dev)"
        )
    argv = command(compiler, pg_config, output, sanitize)
    done = _run(argv)
    log = f"{' '.join(argv)}\n{done.stdout}"
    if done.returncode:
        raise LayerUnavailable(f"the C client does not compile:\n{log[-4000:]}")
    return log


def _loaded_version(program: str) -> str:
    done = _run([program, "--version"])
    found = re.search(r"libpq (\S+)\)", done.stdout)
    if done.returncode or not found:
        raise LayerUnavailable(f"the C client was compiled but does not run: {done.stdout.strip()[-500:]}")
    return found[1]


def _run(argv: list[str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
            stdin=subprocess.DEVNULL, timeout=COMPILE_SECONDS, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LayerUnavailable(f"{argv[0]} cannot be run: {error}") from error
