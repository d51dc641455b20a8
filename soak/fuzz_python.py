"""Fuzz the Python code: the wire protocol, the admin's forms and lists, imports, exports, the
command line.

    python -m soak.fuzz_python [--quick] [--cases 640] [--seed 1] [-k WORDS]

The program runs the property tests in tests/fuzz/ with many inputs, drawn from the seed. It uses
one process per processor, each with its own stack. `--cases` is the number of inputs of a property
of weight 1; the default gives more than 20,000 inputs for wire, forms and imports together. The
bar: that number of inputs, and no input that takes more than 2 s of CPU time or 200 MB, or causes a
status 500, a traceback, or anything else that a property forbids. `--quick`: a tenth of the
inputs.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

#: Area -> its number of inputs, and the CPU time and memory of its costliest one.
Areas = Mapping[str, Mapping[str, Any]]

ROOT = Path(__file__).resolve().parent.parent
#: The least number of inputs of these areas together.
MIN_INPUTS, COUNTED_AREAS = 20_000, ("wire", "forms", "imports")


def main() -> int:
    options = _options()
    cases = options.cases // 10 if options.quick else options.cases
    with tempfile.TemporaryDirectory(prefix="pgperf-fuzz-") as folder:
        words = [f"--hypothesis-seed={options.seed}", *(["-k", options.only] if options.only else [])]
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "tests/fuzz", "-q", "--no-header", "-p", "no:cacheprovider",
             "-n", "logical", "--dist", "worksteal", *words],
            cwd=ROOT, env={**os.environ, "FUZZ_CASES": str(cases), "FUZZ_COUNTS": folder}, check=False,
        )  # fmt: skip
        found = _together([json.loads(path.read_text()) for path in Path(folder).glob("*.json")])
    _table(found, options.seed)
    enough = options.quick or bool(options.only) or _counted(found) >= MIN_INPUTS
    passed = done.returncode == 0 and bool(found) and enough
    print("verdict: " + ("the bar holds" if passed else "the bar does NOT hold"))
    return 0 if passed else 1


def _together(processes: Sequence[Areas]) -> Areas:
    """The areas of all test processes."""
    names = sorted({name for areas in processes for name in areas})
    return {name: _total([areas[name] for areas in processes if name in areas]) for name in names}


def _counted(found: Areas) -> int:
    return _total([found[area] for area in COUNTED_AREAS if area in found])["inputs"]


def _total(areas: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    most = {name: max((area[name] for area in areas), default=0) for name in ("cpu_s", "mb")}
    return {"inputs": sum(area["inputs"] for area in areas), **most}


def _table(found: Areas, seed: int) -> None:
    print(f"\n| area (seed {seed}) | inputs | most CPU time, s | most memory, MB |\n|---|---|---|---|")
    counted = [found[area] for area in COUNTED_AREAS if area in found]
    totals = {", ".join(COUNTED_AREAS): _total(counted), "all": _total(list(found.values()))}
    for name, area in {**found, **totals}.items():
        print(f"| {name} | {area['inputs']:,} | {area['cpu_s']:.2f} | {area['mb']:.0f} |")
    print()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--cases", type=int, default=640)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "-k",
        dest="only",
        default="",
        metavar="WORDS",
        help="run only properties whose name contains these words",
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
