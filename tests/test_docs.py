"""The documents name only links, files, modules and commands that exist, and their prose wraps at
100 columns.
"""

import re
from argparse import ArgumentParser, _SubParsersAction
from collections.abc import Iterator
from dataclasses import fields
from importlib.util import find_spec
from pathlib import Path

import pytest

from pgperf import checks
from pgperf.conf import Settings
from pgperf.management.commands.pgperf import Command
from pgperf.models import Run
from pgperf.reports import result_keys, run_page
from pgperf.reports.file_tables import variant_table
from pgperf.reports.run_rows import RunRows

ROOT = Path(__file__).parent.parent
REFERENCE = ROOT / "docs" / "reference.md"
WIDTH = 100

#: Files of this repository that a text names; docs/architecture.md also names them without the
#: package.
_PATH = re.compile(r"(?<![\w/.-])(?:pgperf|tests|benchmarks|soak|example|docs)/[\w./-]+")
_MODULE = re.compile(r"python -m ((?:benchmarks|soak|tests|example)[\w.]*)")
#: In code only, from the command to the end of the span or line.
_COMMAND = re.compile(r"(?:`|manage\.py )pgperf ([a-z]+)\b([^`\n]*)")
_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
_FENCE = re.compile(r"(?m)^ *```.*?^ *```$", re.DOTALL)


def documents() -> list[Path]:
    return [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]


def subcommands() -> dict[str, ArgumentParser]:
    """The parsers of `manage.py pgperf` by the names of their commands."""
    (found,) = (
        action
        for action in Command().create_parser("manage.py", "pgperf")._actions
        if isinstance(action, _SubParsersAction)
    )
    return dict(found.choices)


each_document = pytest.mark.parametrize("page", documents(), ids=lambda page: str(page.relative_to(ROOT)))


def without_code(text: str) -> str:
    """The text with its fenced code blanked, line for line."""
    return _FENCE.sub(lambda found: "\n" * found[0].count("\n"), text)


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub gives to the headings of a page."""
    titles = re.findall(r"(?m)^#+ +(.+?)\s*$", without_code(page.read_text()))
    plain = (re.sub(r"[^\w\- ]", "", title.lower()) for title in titles)
    return {title.replace(" ", "-") for title in plain}


def prose(text: str) -> Iterator[tuple[int, str]]:
    """Numbered lines that can be wrapped: neither code nor a table's row nor one long word such as
    a link.
    """
    for number, line in enumerate(without_code(text).splitlines(), 1):
        if not line.lstrip().startswith("|") and " " in line.strip():
            yield number, line


@each_document
def test_each_relative_link_leads_to_a_file_and_to_a_heading_in_it(page: Path) -> None:
    broken = []
    for link in _LINK.findall(without_code(page.read_text())):
        if link.startswith(("http://", "https://", "mailto:")):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert not broken


@each_document
def test_each_file_that_a_document_names_exists(page: Path) -> None:
    named = {path.rstrip("./") for path in _PATH.findall(page.read_text())}
    assert not {path for path in named if not (ROOT / path).exists()}


@each_document
def test_each_module_that_a_document_runs_exists(page: Path) -> None:
    named = {name.rstrip(".") for name in _MODULE.findall(page.read_text())}
    assert not {name for name in named if find_spec(name) is None}


@each_document
def test_each_celery_command_works_with_the_oldest_version(page: Path) -> None:
    """Celery 5.5 ends with its usage where it does not know an option."""
    known = {"-A", "-Q", "-c", "-n", "--queues", "--concurrency", "--pool"}
    commands = re.findall(r"celery (-A [^`\n]*)", page.read_text())
    assert not set(re.findall(r"(?<!\S)--?[\w-]+", " ".join(commands))) - known


@each_document
def test_each_make_target_that_a_document_names_exists(page: Path) -> None:
    known = set(" ".join(re.findall(r"(?m)^([a-z][a-z -]*):", (ROOT / "Makefile").read_text())).split())
    named = set(re.findall(r"(?:`|^ *)make ([a-z][a-z-]*)", page.read_text(), re.MULTILINE))
    assert not named - known


@each_document
def test_prose_wraps_at_100_columns(page: Path) -> None:
    long = [number for number, line in prose(page.read_text()) if len(line) > WIDTH]
    assert not long, f"lines {long} of {page.name}"


@each_document
def test_tables_hold_table_rows_only(page: Path) -> None:
    """A line between two rows of a table, such as one from a log, would end the table."""
    lines = without_code(page.read_text()).splitlines()
    between = [
        number
        for number, (before, line, after) in enumerate(zip(lines, lines[1:], lines[2:], strict=False), 2)
        if before.startswith("|") and after.startswith("|") and line and not line.startswith("|")
    ]
    assert not between


@each_document
def test_each_pgperf_command_in_code_exists_with_its_options(page: Path) -> None:
    commands = subcommands()
    for name, options in _COMMAND.findall(page.read_text()):
        assert name in commands, name
        unknown = set(re.findall(r"--[a-z-]+", options)) - set(commands[name]._option_string_actions)
        assert not unknown, f"{name}: {unknown}"


def test_the_reference_lists_every_command_with_its_options() -> None:
    text = REFERENCE.read_text()
    section = text[text.index("\n## Commands") : text.index("\n## Benchmarks")]
    listed = set(re.findall(r"(?m)^\| `([a-z]+)", section))
    commands = subcommands()
    assert listed == set(commands)
    options = {name for parser in commands.values() for name in parser._option_string_actions}
    known = {name for name in options if name.startswith("--")} - {"--help"}
    assert set(re.findall(r"--[a-z][a-z-]*", section)) == known


def test_the_reference_lists_every_setting() -> None:
    text = REFERENCE.read_text()
    table = text[text.index("\n## Settings") : text.index("\n## Layers and modes")]
    assert re.findall(r"(?m)^\| `([A-Z_]+)`", table) == [each.name for each in fields(Settings)]


def test_the_reference_lists_every_system_check() -> None:
    text = REFERENCE.read_text()
    listed = set(re.findall(r"`(?:pgperf\.)?([EW]\d{3})`", text[text.index("\n## System checks") :]))
    assert listed == set(re.findall(r'id="pgperf\.([EW]\d{3})"', Path(checks.__file__).read_text()))


def test_the_reference_names_every_key_of_a_variant() -> None:
    text = REFERENCE.read_text()
    names = (
        *result_keys.LATENCY, *result_keys.COLD, *result_keys.CPU, *result_keys.SHARE, *result_keys.HOST,
        *result_keys.PROCESS, *result_keys.POOLER, *result_keys.STATEMENTS, *result_keys.PHASES,
        *result_keys.HTTP_PHASES, *result_keys.OPEN_PHASES, *result_keys.OPEN_LOOP,
    )  # fmt: skip
    assert not [name for name in names if f"`{name}`" not in text]


def test_the_reference_names_every_column_of_http_requests() -> None:
    text = REFERENCE.read_text()
    section = text[text.index("\n## CSV and XLSX") : text.index("\n## Raw slices")]
    columns = {key for column in variant_table(RunRows(Run(), [], [])).columns for key in column.keys}
    listed = set(re.findall(r"`((?:http|phases_us)_\w+|cpu_account_web_workers)`", section)) - {
        "phases_us_connect"
    }
    assert listed <= columns
    assert {name for name in columns if name.startswith("http_")} <= listed
    assert {f"phases_us_{phase}_mean" for phase in result_keys.HTTP_PHASES} <= listed


def test_the_run_page_document_names_every_section() -> None:
    text = (ROOT / "docs" / "run-page.md").read_text()
    assert not [entry.title for entry in run_page.SECTIONS if str(entry.title) not in text]


def test_the_index_lists_every_document() -> None:
    index = (ROOT / "docs" / "README.md").read_text()
    assert not [page.name for page in (ROOT / "docs").glob("*.md") if page.name not in index + "README.md"]


def test_the_index_of_campaigns_lists_every_campaign() -> None:
    index = (ROOT / "docs" / "campaigns" / "README.md").read_text()
    assert not [
        page.name
        for page in (ROOT / "docs" / "campaigns").glob("*.md")
        if page.name not in index + "README.md"
    ]


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) < 60
