"""A Django site made faster step by step (Jodal): the published table beside the one measured here.

    python -m benchmarks.published_b [--steps RUN.json --near RUN.json --far RUN.json]
        [--keep DIR] [--resume] [--rivals N] [--quick]

The runs are the example site's `site-steps`: 20 clients, a new connection for each request. The first
has all steps, on this machine and at 45 ms of simulated distance, as published. The other two have
the steps that the conclusions are about, at one distance each: a run of all steps has too few blocks
to answer. Without files, the script serves the steps on a separate stack and measures all three, in
about an hour and 40 minutes; `--keep` writes the runs to files. It prints Markdown: the published
requests/s beside ours, each step's own effect, and an answer to each conclusion at both distances, by
the rules of `benchmarks/published_rules.py`. The bar: all published steps are measured, and each
conclusion has an answer. `--quick`: two steps for a few seconds, which only show that everything
works.
"""

from collections.abc import Sequence

from benchmarks.options import run_script
from benchmarks.published import Row, Run, answers, ended, line, options_of, runs
from benchmarks.published_figures import per_s, text, variant
from benchmarks.published_rules import REQUESTS, STEP_RULES, at_distance, step_ratio, steps
from example.stack.stack import SERVERS
from example.stack.web_steps import PUBLISHED, PUBLISHED_MS, STEPS

#: Additional distances, ms, with their titles. The second one is as published.
DISTANCES = {0.0: "near", PUBLISHED_MS: f"{PUBLISHED_MS:g} ms farther away"}
#: The steps that the conclusions are about, in the order of the site's steps: each distance has a run
#: of them alone, which gives the answers.
JUDGED = tuple(name for name in STEPS if any(name in (rule.step, rule.base) for rule in STEP_RULES))
QUICK_STEPS = ("web_nginx", "web_pgbouncer")


def _wanted(names: Sequence[str], budget_s: int, added_ms: float = 0.0) -> tuple[str, ...]:
    """The arguments of a run of these steps, all distances of the benchmark if there are none."""
    routes = ",".join(at_distance(name, added_ms) for name in names)
    chosen = [f"--routes={routes}"] if names else []
    return ("site-steps", "--database", "demo", *chosen, f"--budget-s={budget_s}")


_QUICK = ("--blocks=2", "--rounds=1", "--slice-ms=200", "--clients=2")
WANTED = {
    "steps": (_wanted((), 1980), (*_wanted(QUICK_STEPS, 0), *_QUICK)),
    **{
        name: (
            (*_wanted(JUDGED, 1800, added_ms), "--precision=1"),
            (*_wanted(QUICK_STEPS, 0, added_ms), *_QUICK),
        )
        for name, added_ms in zip(("near", "far"), DISTANCES, strict=True)
    },
}
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


def main() -> int:
    options = options_of(__doc__, WANTED)
    measured = QUICK_STEPS if options.quick else tuple(STEPS)
    run, *judging = runs("published-b", options, WANTED, (*SERVERS, *measured))
    print(table(run) + "\n")
    found = []
    for (added_ms, title), alone in zip(DISTANCES.items(), judging, strict=True):
        judged = steps(alone, added_ms)
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
