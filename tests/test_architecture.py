"""docs/architecture.md shows the rooms and floors of the import contracts in pyproject.toml."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "architecture.md").read_text()
_ROW = re.compile(r"^\| (\d+) \| `(\w+)` \| (\S.*) \|$", re.MULTILINE)
Floors = list[tuple[int, set[str]]]


def contract(container: str) -> Floors:
    """The floors of a package, from the top down, as its layers contract has them."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    (layers,) = (one["layers"] for one in settings["contracts"] if one.get("containers") == [container])
    return [(len(layers) - at, set(floor.split(" | "))) for at, floor in enumerate(layers)]


def tables() -> Iterator[Floors]:
    """The tables of floors on the page, in their order."""
    for table in re.findall(r"(?m)^\| floor \|.*\n\|[-:| ]+\|\n((?:\|.*\n)+)", PAGE):
        floors: dict[int, set[str]] = {}
        for number, room, _does in _ROW.findall(table):
            floors.setdefault(int(number), set()).add(room)
        assert len(_ROW.findall(table)) == len(table.splitlines()), "a row without floor, room or text"
        yield list(floors.items())


@pytest.mark.parametrize(("at", "container"), [(0, "pgperf"), (1, "pgperf.runner")])
def test_the_page_shows_the_floors_of_the_contract(at: int, container: str) -> None:
    assert list(tables())[at] == contract(container)


@pytest.mark.parametrize("container", ["pgperf", "pgperf.runner"])
def test_every_room_is_a_module_or_package(container: str) -> None:
    folder = ROOT.joinpath(*container.split("."))
    rooms = {room for _floor, floor in contract(container) for room in floor}
    assert {
        room for room in rooms if not (folder / f"{room}.py").exists() and not (folder / room).is_dir()
    } == set()


def test_the_files_of_the_page_exist() -> None:
    """Paths are relative to the package, unless they begin with another directory of the
    repository.
    """
    named = set(re.findall(r"`([a-z_]+(?:/[\w.]+)+/?)`", PAGE))
    assert named
    assert {
        name for name in named if not any((base / name).exists() for base in (ROOT, ROOT / "pgperf"))
    } == set()


def test_the_glossary_is_sorted_and_gives_each_term_once() -> None:
    terms = re.findall(r"(?m)^\| ([^|`\d]+?) \|", PAGE[PAGE.index("## Glossary") :])[1:]
    assert [term.lower() for term in terms] == sorted({term.lower() for term in terms})
