"""Two upgrades on the queries of the example site: psycopg 3.2 to 3.3, and Django 5.2 to 6.1.

    python -m benchmarks.upgrades [--quick] [--python PATH] [--keep DIR [--resume]] [--rivals N]

Each upgrade has two virtual environments of one Python, which differ in the upgraded package alone.
They are made in .upgrades and kept. `--python`: that Python, 3.12 or newer because of Django 6.1.
Each run measures both sides in the same rounds, through psycopg, Django's cursor and the ORM. The
table has the time per operation of both, and the time after the upgrade over the time before it.
The eight runs take about 40 minutes; `--keep` writes each of them to a file in DIR, and
with `--resume` the same command measures only those that DIR lacks.

The bar: every cell is measured. A quick run shows that the script works; its figures count for
nothing.
"""

import argparse
import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from benchmarks.example_site import ROOT
from benchmarks.options import ScriptParser, run_script
from benchmarks.published import QUICK, REFUSAL, Run, file_of, line, options_of, runs
from benchmarks.published_figures import ratio, text, us_per_op, variant

FOLDER = ROOT / ".upgrades"
BENCHMARKS = ("book-by-isbn", "books-of-a-publisher", "books-page", "n-plus-one")
LAYERS = ("psycopg", "django_cursor", "django_orm")
_OLDEST = (3, 12)
#: Of each run. `n-plus-one` has two workloads: on a slow machine its six blocks needed 283 s.
BUDGETS_S = {**dict.fromkeys(BENCHMARKS, 240), "n-plus-one": 360}
_PSYCOPG, _DJANGO = "psycopg[binary]=={}.*", "Django=={}.*"


@dataclass(frozen=True)
class Side:
    """An environment, and what pip installs in it beside what both sides have."""

    name: str
    title: str
    packages: tuple[str, ...]


UPGRADES: Mapping[str, tuple[Side, Side]] = {
    "psycopg": (
        Side("psycopg32", "psycopg 3.2", (_DJANGO.format("5.2"), _PSYCOPG.format("3.2"))),
        Side("psycopg33", "psycopg 3.3", (_DJANGO.format("5.2"), _PSYCOPG.format("3.3"))),
    ),
    "django": (
        Side("django52", "Django 5.2", (_DJANGO.format("5.2"), _PSYCOPG.format("3.3"))),
        Side("django61", "Django 6.1", (_DJANGO.format("6.1"), _PSYCOPG.format("3.3"))),
    ),
}


def _words(upgrade: str, benchmark: str) -> list[str]:
    names = ",".join(side.name for side in UPGRADES[upgrade])
    return [benchmark, f"--environments={names}", f"--layers={','.join(LAYERS)}", "--routes=socket"]


WANTED = {
    f"{upgrade}-{benchmark}": (
        [*_words(upgrade, benchmark), f"--budget-s={BUDGETS_S[benchmark]}"],
        [*_words(upgrade, benchmark), *QUICK],
    )
    for upgrade, benchmark in product(UPGRADES, BENCHMARKS)
}


def main() -> int:
    options = options_of(__doc__, WANTED, _add_python)
    if not all(file_of(options, name) for name in WANTED):
        os.environ["PGPERF_ENVIRONMENTS"] = json.dumps(_environments(options))
    measured = dict(zip(WANTED, runs("upgrades", options, WANTED), strict=True))
    lacking = 0
    for upgrade, sides in UPGRADES.items():
        found = {name: measured[f"{upgrade}-{name}"] for name in BENCHMARKS}
        rows = [cells for run in found.values() for cells in _rows(run, sides)]
        lacking += sum("not measured" in cells for cells in rows)
        print("\n".join(["", *_table(sides, rows)]))
        print("\n".join(["", *_versions(next(iter(found.values())), sides)]))
    print(f"\nverdict: the bar {'does NOT hold' if lacking else 'holds'}: {lacking} cells not measured")
    return 1 if lacking else 0


def _add_python(parser: ScriptParser) -> None:
    parser.add_argument("--python", type=Path, default=Path(sys.executable), help="the Python of all sides")


# ---- the environments ----


def _environments(options: argparse.Namespace) -> dict[str, str]:
    """The Python of each side, by its name; made where there is none for these packages."""
    asked = "import sys; print(*sys.version_info[:2])"
    said = subprocess.run([options.python, "-c", asked], capture_output=True, text=True, check=True).stdout
    if tuple(map(int, said.split())) < _OLDEST:
        raise SystemExit("verdict: cannot measure: Django 6.1 needs Python 3.12; give one by --python")
    return {side.name: str(_made(side, options.python)) for sides in UPGRADES.values() for side in sides}


def _made(side: Side, python: Path) -> Path:
    root = FOLDER / side.name
    wanted = "\n".join([str(python), *_packages(side)])
    stamp = root / "packages.txt"
    if not stamp.exists() or stamp.read_text() != wanted:
        print(f"installing: {side.name}", file=sys.stderr, flush=True)
        subprocess.run([python, "-m", "venv", "--clear", root], check=True)
        pip = ("-m", "pip", "--quiet", "--disable-pip-version-check", "install")
        subprocess.run([root / "bin" / "python", *pip, *_packages(side)], check=True)
        (packages,) = root.glob("lib/python*/site-packages")
        (packages / "pgperf.pth").write_text(str(ROOT))
        stamp.write_text(wanted)
    return root / "bin" / "python"


def _packages(side: Side) -> list[str]:
    """Those of the side, of pgperf, and of the example site."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    own = [word for word in project["dependencies"] if not word.startswith("Django")]
    return [*side.packages, *own, "whitenoise"]


# ---- the tables ----


def _rows(run: Run, sides: Sequence[Side]) -> Iterator[list[str]]:
    works = [*dict.fromkeys(row["workload"] for row in run["variants"])] or [REFUSAL]
    for workload, layer in product(works, LAYERS):
        before, after = (
            variant(run, workload=workload, layer=layer, environment=side.name) for side in sides
        )
        if not (before and after):
            yield [workload, layer, "not measured", "", "", ""]
            continue
        labels = {before["label"], after["label"]}
        compared = (each for each in run["comparisons"] if {each["variant"], each["baseline"]} == labels)
        outcome = next((each["outcome"] for each in compared), "not compared")
        times = [text(us_per_op(each), 1) for each in (before, after)]
        yield [workload, layer, *times, text(ratio(run, after, before), 3), outcome]


def _table(sides: Sequence[Side], rows: Sequence[Sequence[str]]) -> list[str]:
    before, after = (side.title for side in sides)
    head = ("workload", "layer", f"{before}, µs", f"{after}, µs", "after over before", "outcome")
    return [line(*head), "|---" * len(head) + "|", *(line(*cells) for cells in rows)]


def _versions(run: Run, sides: Sequence[Side]) -> Iterator[str]:
    known = (run["run"]["environment"] or {}).get("environments", {})
    for side in sides:
        facts = known.get(side.name, {})
        yield f"{side.name}: {json.dumps(facts, sort_keys=True)}"


if __name__ == "__main__":
    run_script(main)
