"""A Django site made faster step by step (Jodal): the published table beside the one measured here.

    python -m benchmarks.published_b [--steps RUN.json] [--keep DIR] [--rivals N] [--quick]

The run is the example site's `site-steps`: 20 clients, a new connection for each request, on this
machine and at 45 ms of simulated distance, as published. Without a file, the script serves all steps
on a separate stack and measures them; `--keep` writes the run to a file. It prints Markdown: the
published requests/s beside ours, each step's own effect, and an answer to each conclusion at both
distances, by the rules of `benchmarks/published_rules.py`. The run takes an hour at most. The bar: all
published steps are measured, and each conclusion has an answer. `--quick`: two steps for a few
seconds, which only show that everything works.
"""

from collections.abc import Sequence

from benchmarks.options import run_script
from benchmarks.published import Row, Run, answers, ended, line, options_of, runs
from benchmarks.published_figures import per_s, text, variant
from benchmarks.published_rules import REQUESTS, at_distance, step_ratio, steps
from example.stack.stack import SERVERS
from example.stack.web_steps import PUBLISHED, PUBLISHED_MS, STEPS

_RUN = ("site-steps", "--database", "demo")
_FULL = ("--budget-s=3600",)
QUICK_STEPS = ("web_nginx", "web_pgbouncer")
_QUICK = (
    f"--routes={','.join(QUICK_STEPS)}", "--budget-s=0", "--blocks=2", "--rounds=1", "--slice-ms=200",
    "--clients=2",
)  # fmt: skip
WANTED = {"steps": ((*_RUN, *_FULL), (*_RUN, *_QUICK))}
#: Published requests/s.
PER_S = {
    "web_apache": "4.0",
    "web_nginx": "9.0",
    "web_pgbouncer": "10.5; 9.2 with autocommit",
    "web_no_autocommit": "10.5",
    "web_tls": "10.5",
    "web_tls_new": "10.5",
    "web_cluster": "10.5",
    "web_advised": "11.7",
}
#: Additional distances, ms, with their titles. The second one is as published.
DISTANCES = {0.0: "near", PUBLISHED_MS: f"{PUBLISHED_MS:g} ms farther away"}


def main() -> int:
    options = options_of(__doc__, WANTED)
    measured = QUICK_STEPS if options.quick else tuple(STEPS)
    (run,) = runs("published-b", options, WANTED, (*SERVERS, *measured))
    print(table(run) + "\n")
    found = []
    for added_ms, title in DISTANCES.items():
        judged = steps(run, added_ms)
        print(f"{title}:\n\n{answers(judged, 'his')}\n")
        found += judged
    lacking = missing(run, QUICK_STEPS, ()) if options.quick else missing(run, tuple(STEPS), PUBLISHED)
    return ended(lacking, [each.word for each in found], "his", quick=options.quick)


def missing(run: Run, near: Sequence[str], far: Sequence[str]) -> list[str]:
    """The steps that were not measured, near and at the published distance."""
    wanted = [(name, 0.0) for name in near] + [(name, PUBLISHED_MS) for name in far]
    return [at_distance(*each) for each in wanted if not _row(run, *each)]


def table(run: Run) -> str:
    """Requests/s and own effect of each step."""
    titles = [f"{what}, {title}" for title in DISTANCES.values() for what in ("requests/s", "own effect")]
    lines = [line("step", "builds on", "published", *titles), "|---" * (len(titles) + 3) + "|"]
    for name, step in STEPS.items():
        cells = [cell for added_ms in DISTANCES for cell in _cells(run, name, added_ms)]
        lines.append(line(step.title, step.builds_on, PER_S.get(name, "–"), *cells))
    return "\n".join(lines)


def _cells(run: Run, name: str, added_ms: float) -> tuple[str, str]:
    row, base = _row(run, name, added_ms), STEPS[name].builds_on
    if row is None:
        return "–", "–"
    effect = step_ratio(run, name, base, added_ms) if base else None
    return text(per_s(row), 1), text(effect, 3) if effect else "–"


def _row(run: Run, name: str, added_ms: float) -> Row | None:
    return variant(run, **REQUESTS, route=at_distance(name, added_ms))


if __name__ == "__main__":
    run_script(main)
