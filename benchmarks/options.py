"""The command line of the scripts of this directory."""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from pgperf.core.exceptions import PgperfError


def run_script(main: Callable[[], int]) -> NoReturn:
    """End with the script's exit code; what pgperf refuses is the script's verdict."""
    try:
        sys.exit(main())
    except PgperfError as error:
        sys.exit(f"verdict: cannot measure: {error}")


def output_file(text: str) -> Path:
    """The file of an option, made now with its folder: a result that cannot be kept is of no use.

    Raises ArgumentTypeError.
    """
    path = Path(text)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.open("a").close()
    except OSError as error:
        raise argparse.ArgumentTypeError(f"{path}: {error.strerror}") from None
    return path


class ScriptParser(argparse.ArgumentParser):
    """A parser whose help is the script's docstring, with the option `--quick`."""

    def __init__(self, doc: str | None, *, quick: bool = True) -> None:
        super().__init__(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
        self._sizes: dict[str, tuple[int, int]] = {}
        if quick:
            self.add_argument("--quick", action="store_true", help="a short run, with a wider bar")

    def add_size(self, option: str, meaning: str, *, full: int, quick: int) -> None:
        """A whole number whose default is smaller in a quick run."""
        action = self.add_argument(option, type=int, help=f"{meaning} ({full}; quick: {quick})")
        self._sizes[action.dest] = (full, quick)

    def add_out(self) -> None:
        """The file of a campaign (benchmarks/json_lines.py)."""
        meaning = "keep the results in this file, one JSON object a line, and go on after those that it has"
        self.add_argument("--out", type=output_file, help=meaning)

    def add_seed(self) -> None:
        meaning = "seed of the first run; each further run adds 1"
        self.add_argument("--seed", type=int, default=1, help=meaning)

    def add_rivals(self, default: int = 0) -> None:
        """Load beside what is measured (benchmarks/spinners.py)."""
        meaning = f"processes that each keep a CPU busy meanwhile ({default})"
        self.add_argument("--rivals", type=int, default=default, help=meaning)

    def options(self, words: Sequence[str] | None = None) -> argparse.Namespace:
        """Those of the command line, or of these words, with the sizes that were not given."""
        options = self.parse_args(words)
        for name, (full, quick) in self._sizes.items():
            if getattr(options, name) is None:
                setattr(options, name, quick if options.quick else full)
        return options
