"""A campaign of several kinds of case, each performed a number of times: its options and its table."""

import argparse
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from soak import lanes

HEAD = "\n| {} | times | held | s, median | longest | what was measured |\n|---|---|---|---|---|---|"


@dataclass(frozen=True)
class Campaign:
    """`name` is a module of soak, `cases` the one that performs its cases.

    `kinds` has the repetitions in a full campaign, `quick` those in a quick one; `lanes` is how
    many sites work in parallel.
    """

    name: str
    cases: str
    kind: str
    kinds: Mapping[str, int]
    quick: int
    lanes: int

    def options(self, description: str | None) -> argparse.Namespace:
        parser = argparse.ArgumentParser(
            prog=f"python -m soak.{self.name}",
            description=f"{description}\nkinds: {', '.join(self.kinds)}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        parser.add_argument("--seed", type=int, default=20261121)
        parser.add_argument(
            "--count", type=int, default=0, help="limit on the repetitions of each kind (0: none)"
        )
        parser.add_argument(
            "--quick", action="store_true", help=f"repeat each kind at most {self.quick} times"
        )
        parser.add_argument("--case", choices=list(self.kinds), metavar="KIND", help="run only this kind")
        parser.add_argument("--lanes", type=int, default=self.lanes, help=f"sites in parallel ({self.lanes})")
        return parser.parse_args()

    def perform(self, options: argparse.Namespace, kinds: Sequence[str]) -> int:
        """Perform the kinds, print their table and a verdict; the exit status."""
        most = self.quick if options.quick else options.count or max(self.kinds.values())
        cases = [{"seed": options.seed, "kind": kind, "count": min(most, self.kinds[kind])} for kind in kinds]
        begin, results = time.monotonic(), []
        print(HEAD.format(self.kind))
        for result in lanes.perform(self.cases, cases, options.lanes):
            results.append(result)
            print(row(result), flush=True)
        bad = [result for result in results if result["wrong"]]
        for result in bad:
            print(f"\n{result['kind']}: {'; '.join(result['wrong'][:5])}")
            print(f"replay: {self._replay(options.seed, result)}")
        print(
            f"\nverdict: {len(results) - len(bad)} of {len(results)} kinds of {self.kind} hold, in"
            f" {(time.monotonic() - begin) / 60:.1f} minutes (seed {options.seed})"
        )
        return 1 if bad or not results else 0

    def _replay(self, seed: int, result: Mapping[str, Any]) -> str:
        return f"python -m soak.{self.name} --seed {seed} --count {result['count']} --case '{result['kind']}'"


def row(result: dict[str, Any]) -> str:
    took = sorted(result.get("took", []))
    middle, longest = (f"{took[len(took) // 2]:.1f}", f"{took[-1]:.1f}") if took else ("–", "–")
    held = f"{max(0, result['count'] - len(result['wrong']))}/{result['count']}"
    cells = [result["kind"], str(result["count"]), held, middle, longest, result.get("measured", "")]
    return "| " + " | ".join(cells) + " |"
