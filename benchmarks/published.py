"""What the scripts of published results share: their runs, the answers to conclusions, and Markdown.

A run is the JSON object of `pgperf run --json`.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.example_site import ROOT, manage, try_benchmark
from benchmarks.json_lines import commit
from benchmarks.options import ScriptParser
from benchmarks.promised_time import refused_s
from benchmarks.spinners import DAY_S, spinning
from example.stack.stack import SERVERS, Stack

CONFIRMED, REFUTED, QUALIFIED, UNKNOWN = "confirmed", "refuted", "qualified", "unknown"
Row = Mapping[str, Any]
Run = Mapping[str, Any]
#: Name of an option, and of a run -> the arguments of `pgperf run`, in full and with `--quick`.
Wanted = Mapping[str, tuple[Sequence[str], Sequence[str]]]

#: The field that a kept file has beside those of a run: those conditions, and the commit.
_CONDITIONS, _COMMIT = "conditions", "commit"
#: The field of a run that was refused because its blocks cannot fit: why. It has no results.
REFUSAL = "refused"

#: A run with these arguments shows that a script works. Its figures count for nothing.
QUICK = ("--budget-s=0", "--blocks=2", "--rounds=2", "--slice-ms=30", "--diagnostic-ms=100")


@dataclass(frozen=True)
class Judgement:
    """The answer of the runs to one of the author's conclusions, and its evidence."""

    conclusion: str
    word: str
    evidence: str


def options_of(
    doc: str | None, wanted: Wanted, add_more: Callable[[ScriptParser], None] = lambda parser: None
) -> argparse.Namespace:
    """The options of a script: a file for each run, --keep, --resume, --rivals and --quick, and
    those that `add_more` adds. Without any file, the script measures all runs itself.
    """
    parser = ScriptParser(doc)
    for name, (words, _quick) in wanted.items():
        parser.add_argument(f"--{name}", metavar="RUN.json", type=Path, help=f"a run of {' '.join(words)}")
    parser.add_argument("--keep", metavar="DIR", type=Path, help="write the runs to files in DIR")
    parser.add_argument("--resume", action="store_true", help="measure only the runs that DIR lacks")
    parser.add_rivals()
    add_more(parser)
    options = parser.options()
    given = [name for name in wanted if file_of(options, name)]
    if given and len(given) < len(wanted):
        parser.error(f"give all of {', '.join(f'--{name}' for name in wanted)}, or none")
    if options.resume and not options.keep:
        parser.error("--resume goes with --keep DIR, which has the runs before")
    for name in ("keep", "rivals"):
        if given and getattr(options, name):
            parser.error(f"--{name} is for runs that are measured; leave it out with files")
    return options


def runs(
    script: str, options: argparse.Namespace, wanted: Wanted, parts: Sequence[str] = SERVERS
) -> list[Run]:
    """The runs in the order of `wanted`: from their files, or measured on a separate stack of these
    parts, beside the rivals. With --resume, those that an earlier call kept are not measured again.
    One that is refused because its blocks cannot fit has no results, and is not kept.
    """
    files = [file_of(options, name) for name in wanted]
    if all(files):
        return [read(path) for path in files if path]
    if options.keep:
        options.keep.mkdir(parents=True, exist_ok=True)
    asked = {f"{script}-{name}": quick if options.quick else full for name, (full, quick) in wanted.items()}
    found = {name: run for name, words in asked.items() if (run := _kept(options, name, words))}
    if lacking := {name: words for name, words in asked.items() if name not in found}:
        found |= _all_measured(script, options, lacking, parts)
    return [found[name] for name in asked]


def _all_measured(
    script: str, options: argparse.Namespace, asked: Mapping[str, Sequence[str]], parts: Sequence[str]
) -> dict[str, Run]:
    """The runs of these names, each with its arguments."""
    with Stack(ROOT / ".stack" / script, parts, keep=False) as stack:
        manage(stack.env, "set_up_site")
        manage(stack.env, "pgperf", "build")
        with spinning(options.rivals, DAY_S):
            return {name: _measured(stack, words, options, name) for name, words in asked.items()}


def file_of(options: argparse.Namespace, name: str) -> Path | None:
    """The file of a run, if it was given."""
    found: Path | None = getattr(options, name.replace("-", "_"))
    return found


def read(path: Path) -> Run:
    """Raises SystemExit if the file has no run."""
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise SystemExit(f"{path}: {error}; give the output of `pgperf run --json`") from None
    if not isinstance(found, dict) or not {"variants", "comparisons"} <= found.keys():
        raise SystemExit(f"{path}: this is no run; give the output of `pgperf run --json`")
    return found


def _measured(stack: Stack, words: Sequence[str], options: argparse.Namespace, name: str) -> Run:
    print(f"measuring: pgperf run {' '.join(words)}", file=sys.stderr, flush=True)
    run = try_benchmark(stack.env, *words, control=stack.control)
    if run["run"]["status"] != "done":
        return _refused(run)
    _keep(run, words, options, name)
    return run


def _refused(run: Run) -> Run:
    """Exits where the run failed for another reason than its time."""
    why = run["run"]["error"]
    if refused_s(dict(run)) is None:
        raise SystemExit(f"verdict: cannot measure: {why}")
    print(f"refused: {why}", file=sys.stderr, flush=True)
    return {"run": run["run"], REFUSAL: why, "variants": [], "comparisons": []}


def _keep(run: Run, words: Sequence[str], options: argparse.Namespace, name: str) -> None:
    if path := _path(options, name):
        part = path.with_suffix(".part")  # a script that is killed leaves no half of a file
        beside = {_CONDITIONS: _conditions(options, words), _COMMIT: commit()}
        part.write_text(json.dumps({**run, **beside}, indent=1) + "\n")
        part.replace(path)
        print(f"kept: {path}", file=sys.stderr, flush=True)


def _kept(options: argparse.Namespace, name: str, words: Sequence[str]) -> Run | None:
    """The run that an earlier call kept under that name, if it had the same conditions."""
    path = _path(options, name)
    if not options.resume or path is None or not path.exists():
        return None
    run = read(path)
    if run.get(_CONDITIONS) != _conditions(options, words):
        return None
    then = run.get(_COMMIT)
    other = "" if then == commit() else f" (by commit {then or 'unknown'}, this is {commit() or 'unknown'})"
    print(f"kept already: {path}{other}", file=sys.stderr, flush=True)
    return run


def quiet_run(folder: Path, name: str, words: Sequence[str]) -> Run:
    """The run with these arguments that an earlier call kept, without rivals. Raises SystemExit if
    there is none.
    """
    path = folder / file_name(name, 0)
    run = read(path)
    if (run.get(_CONDITIONS) or {}).get("arguments") != [*words]:
        raise SystemExit(f"{path}: this is no run of `pgperf run {' '.join(words)}` that --keep wrote")
    return run


def _conditions(options: argparse.Namespace, words: Sequence[str]) -> dict[str, Any]:
    """What a run depends on: its arguments, and the Python of its environments, if the script chooses
    one.
    """
    python = getattr(options, "python", None)
    return {"arguments": [*words], "python": str(python) if python else None}


def _path(options: argparse.Namespace, name: str) -> Path | None:
    """Where the run is kept; None: nowhere."""
    return options.keep / file_name(name, options.rivals) if options.keep else None


def file_name(name: str, rivals: int) -> str:
    """Of a run that is kept. One beside load does not replace that of the quiet machine."""
    return f"{name}-beside-{rivals}.json" if rivals else f"{name}.json"


def ended(
    lacking: Sequence[str], words: Sequence[str], whose: str, *, quick: bool, unexplained: Sequence[str] = ()
) -> int:
    """Print the verdict on the script's bar; returns the exit code.

    The bar: all of the published configurations are measured, no answer is unknown, and none is
    `unexplained`, another one than that of quiet runs. A quick run needs no answers.
    """
    holds = not lacking and not unexplained and (quick or UNKNOWN not in words)
    said = f"the bar {'holds' if holds else 'does NOT hold'}: "
    if lacking:
        print(f"\nverdict: {said}not measured: {', '.join(lacking)}")
        return 1
    remedy = "" if UNKNOWN not in words else "; repeat the unknown measurements on a quiet machine"
    other = "; unlike quiet runs, and not by the machine: " if unexplained else ""
    found = f"{whose} conclusions are {', '.join(words)}{remedy}{other}{'; '.join(unexplained)}"
    print(f"\nverdict: {said}all measured, {found}")
    return 0 if holds else 1


def answers(found: Iterable[Judgement], whose: str) -> str:
    """The judgements as a table in Markdown."""
    rows = [line(each.conclusion, f"**{each.word}**", each.evidence) for each in found]
    return "\n".join([line(f"{whose} conclusion", "answer", "evidence"), "|---|---|---|", *rows])


def number(value: float | None, digits: int) -> str:
    return "unknown" if value is None else f"{value:,.{digits}f}"


def line(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"
