"""Run the long checks: `python -m soak`.

With options: `make soak SOAK_ARGS='--only kills --seed 7'`.

Each campaign is a separate program (`python -m soak.kills --help`). It prints a table and the
command that replays a failed case. Its last line says whether the campaign holds; the exit code
is 0 only then. Campaigns that mostly wait run side by side, so each line begins with the name of
its campaign.
"""

import argparse
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Campaign:
    """A program that takes --seed and --quick."""

    program: str
    about: str


CAMPAIGNS = {
    "kills": Campaign("soak.kills", "kill -9 of each process of the site at random moments"),
    "faults": Campaign(
        "soak.faults", "repeated messages, double clicks, cancel in every state, a lost broker"
    ),
    "outages": Campaign(
        "soak.outages", "suspended processes, a full disk, a standby, limits of a control group"
    ),
    "load-hosts": Campaign(
        "soak.load_hosts", "load hosts that die or are cut off, servers that restart, and cancels"
    ),
    "fuzz-c": Campaign("soak.fuzz_c", "hostile input to the C client"),
    "fuzz-python": Campaign(
        "soak.fuzz_python", "hostile input to the wire, forms, lists, imports and commands"
    ),
    "aa": Campaign("benchmarks.false_alarms", "comparisons of a variant with itself (A/A)"),
}
#: Stages, one after another, of tracks side by side, each of campaigns one after another. The one that
#: measures is alone, and first: a quiet machine is easier to promise for its first half hour.
STAGES = ((("aa",),), (("kills", "faults", "outages", "fuzz-c"), ("load-hosts", "fuzz-python")))


@dataclass(frozen=True)
class Result:
    """How a campaign ended, and how long it took, s."""

    name: str
    holds: bool
    seconds: float


def main() -> int:
    options = _options()
    results = [result for stage in STAGES for result in _stage(stage, options)]
    print(f"\n{'campaign':<12} {'minutes':>8}  holds   (seed {options.seed})")
    for result in results:
        print(f"{result.name:<12} {result.seconds / 60:>8.1f}  {'yes' if result.holds else 'NO'}")
    return 0 if all(result.holds for result in results) else 1


def _stage(tracks: Sequence[Sequence[str]], options: argparse.Namespace) -> Iterator[Result]:
    chosen = [[name for name in track if name in options.only] for track in tracks]
    with ThreadPoolExecutor(len(chosen)) as side_by_side:
        for results in side_by_side.map(lambda names: [_run(name, options) for name in names], chosen):
            yield from results


def _run(name: str, options: argparse.Namespace) -> Result:
    """Run a campaign to its end, and print what it prints."""
    begin, argv = time.monotonic(), _argv(name, options)
    print(f"{name:<12} {shlex.join(['python', *argv[1:]])}", flush=True)
    with subprocess.Popen(
        argv,
        cwd=ROOT,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as program:
        for line in program.stdout or ():
            print(f"{name:<12} {line}", end="", flush=True)
    return Result(name, program.returncode == 0, time.monotonic() - begin)


def _argv(name: str, options: argparse.Namespace) -> list[str]:
    more = ["--quick"] if options.quick else []
    if options.count and name in ("kills", "faults", "outages", "load-hosts"):
        more += ["--count", str(options.count)]
    if name == "aa":  # A new file: the campaign would go on after the runs of one that it finds.
        more += ["--out", str(Path(tempfile.mkdtemp(prefix="pgperf-soak-"), "false-alarms.jsonl"))]
    return [sys.executable, "-m", CAMPAIGNS[name].program, f"--seed={options.seed}", *more]


def _options() -> argparse.Namespace:
    about = "\n".join(f"  {name:<12} {campaign.about}" for name, campaign in CAMPAIGNS.items())
    parser = argparse.ArgumentParser(
        prog="python -m soak",
        description=f"{__doc__}\ncampaigns:\n{about}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--only", type=_names, default=list(CAMPAIGNS), metavar="A,B", help="run only these campaigns"
    )
    parser.add_argument("--seed", type=int, default=20261121)
    parser.add_argument(
        "--count",
        type=int,
        default=0,
        help="cases of kills, faults, outages and load hosts (default: their own count)",
    )
    parser.add_argument("--quick", action="store_true", help="run a small version of each campaign")
    return parser.parse_args()


def _names(text: str) -> list[str]:
    names = text.split(",")
    if unknown := [name for name in names if name not in CAMPAIGNS]:
        raise argparse.ArgumentTypeError(
            f"no campaign {', '.join(unknown)}; choose from {', '.join(CAMPAIGNS)}"
        )
    return names


if __name__ == "__main__":
    sys.exit(main())
