"""Knocks on what is written in Python: the wire, the admin's forms, lists, imports and exports, the command line.

    python -m soak.fuzz_python [--quick] [--cases 640] [--seed 1] [-k WORDS]

Runs the properties in tests/fuzz/ with many inputs, drawn from the seed, in a stack of its own. `--cases` is the number
of inputs of a property of weight 1; the default comes to more than 20,000 for wire, forms and imports together. The
bar: so many inputs of these, and none of any area that is answered by a 500, a traceback, or anything else a property
does not allow. `--quick`: a tenth of it.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
#: So many inputs of these areas together.
WANTED, ASKED = 20_000, ("wire", "forms", "imports")


def main() -> int:
    options = _options()
    cases = options.cases // 10 if options.quick else options.cases
    with tempfile.TemporaryDirectory(prefix="pgperf-fuzz-") as folder:
        counts = Path(folder) / "counts"
        words = [f"--hypothesis-seed={options.seed}", *(["-k", options.only] if options.only else [])]
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "tests/fuzz", "-q", "--no-header", "-p", "no:cacheprovider", *words],
            cwd=ROOT, env={**os.environ, "FUZZ_CASES": str(cases), "FUZZ_COUNTS": str(counts)}, check=False,
        )  # fmt: skip
        found = json.loads(counts.read_text()) if counts.exists() else {}
    _table(found, options.seed)
    enough = options.quick or bool(options.only) or _asked(found) >= WANTED
    passed = done.returncode == 0 and bool(found) and enough
    print("verdict: " + ("the bar holds" if passed else "the bar does NOT hold"))
    return 0 if passed else 1


def _asked(found: dict[str, int]) -> int:
    return sum(found.get(area, 0) for area in ASKED)


def _table(found: dict[str, int], seed: int) -> None:
    print(f"\n| area (seed {seed}) | inputs |\n|---|---|")
    totals = {", ".join(ASKED): _asked(found), "all": sum(found.values())}
    for area, count in {**found, **totals}.items():
        print(f"| {area} | {count:,} |")
    print()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--cases", type=int, default=640)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "-k", dest="only", default="", metavar="WORDS", help="only properties whose name has them"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
