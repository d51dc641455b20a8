"""psycopg2 and psycopg 3 (Timescale): the published tables beside those measured here.

    python -m benchmarks.published_d [--published RUN.json --fair RUN.json --arrays RUN.json]
        [--keep DIR] [--resume] [--rivals N] [--quick]

The first two runs are those of the catalog's `driver-suite-published`, under the conditions of the
published suite, with the asynchronous drivers on uvloop, and `driver-suite`, under the same
conditions for every driver, on asyncio. The third one has arrays alone, under the published
conditions: there both drivers differ by so little that a run of seven queries cannot answer. Without
files, the script runs all on a separate stack; `--keep` writes them to files. It prints Markdown: the
published figures beside ours, and an answer to each conclusion under both conditions, by the rules
of `benchmarks/published_rules.py`. The bar: every published cell is measured, and each conclusion
has an answer under the published conditions. `--quick`: short measurements, which only show that
everything works.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from benchmarks.options import run_script
from benchmarks.published import (
    QUICK,
    REFUSAL,
    Judgement,
    Row,
    Run,
    answers,
    ended,
    line,
    number,
    options_of,
    runs,
)
from benchmarks.published_figures import geometric_mean, ms_per_op, per_s, text, variant
from benchmarks.published_rules import ASYNC, ASYNC_ON_ASYNCIO, MODES, QUERIES, drivers
from pgperf.analysis.paired_statistics import Estimate

ARRAYS = ("--workloads=arrays", "--layers=psycopg2,psycopg")
WANTED = {
    "published": (("driver-suite-published", "--budget-s=1500"), ("driver-suite-published", *QUICK)),
    "fair": (("driver-suite", "--budget-s=1500"), ("driver-suite", *QUICK)),
    "arrays": (
        ("driver-suite-published", *ARRAYS, "--precision=1", "--budget-s=900"),
        ("driver-suite-published", *ARRAYS, *QUICK),
    ),
}
#: The layers under the published conditions, and the published names of their drivers.
DRIVERS = {"psycopg2": "psycopg2", "psycopg": "psycopg3", ASYNC: "psycopg3-async"}
#: The layers that stand for them under the same conditions for every driver.
FAIR = {**{driver: driver for driver in DRIVERS}, ASYNC: ASYNC_ON_ASYNCIO}


@dataclass(frozen=True)
class Measure:
    """A published table: by driver the geometric mean, then the queries. `of` is our figure."""

    title: str
    digits: int
    of: Callable[[Row], Estimate | None]
    published: Mapping[str, Sequence[float]]


MEASURES = (
    Measure(
        "queries/s", 1, per_s,
        {
            "psycopg2": (409.39, 246.18, 626.67, 2099.09, 1091.84, 44.44, 13.26, 9249.65),
            "psycopg": (374.57, 804.45, 1250.97, 1013.91, 1015.23, 45.66, 4.93, 4436.81),
            ASYNC: (474.94, 749.26, 1286.34, 1330.10, 1139.06, 47.03, 11.04, 7189.77),
        },
    ),
    Measure(
        "rows/s", 0, lambda row: per_s(row, "rows_per_s"),
        {
            "psycopg2": (102359.51, 150417.57, 626673.62, 209908.72, 109184.26, 444406.71, 13257.48, 9249.65),
            "psycopg": (93665.83, 491518.87, 1250967.46, 101390.58, 101522.77, 456625.68, 4932.76, 4436.81),
            ASYNC: (
                118755.18, 457796.17, 1286341.35, 133010.47, 113906.13, 470290.05, 11041.44, 7189.77,
            ),
        },
    ),
    Measure(
        "mean latency, ms", 3, ms_per_op,
        {
            "psycopg2": (24.366, 40.55, 15.936, 4.755, 9.147, 224.094, 753.025, 1.075),
            "psycopg": (26.527, 12.418, 7.983, 9.853, 9.839, 218.195, 1962.827, 2.246),
            ASYNC: (21.022, 13.336, 7.765, 7.51, 8.771, 212.059, 905.604, 1.385),
        },
    ),
)  # fmt: skip


def main() -> int:
    options = options_of(__doc__, WANTED)
    published, fair, arrays = runs("published-d", options, WANTED)
    for measure in MEASURES:
        print(table(measure, published, fair) + "\n")
    found = drivers(published, threads=True, alone={"arrays": arrays})
    print(answers(found, "their") + "\n")
    print(compared(found, drivers(fair, threads=False)))
    lacking = [*missing(published), *([fair[REFUSAL]] if fair.get(REFUSAL) else ())]
    return ended(lacking, [each.word for each in found], "their", quick=options.quick)


def missing(run: Run) -> list[str]:
    """The published cells that were not measured."""
    return [
        f"{query} through {driver}" for driver in DRIVERS for query in QUERIES if not _row(run, driver, query)
    ]


def table(measure: Measure, published: Run, fair: Run) -> str:
    """Three lines for each driver: the published figures, and ours under both conditions."""
    lines = [line(measure.title, "geometric mean", *QUERIES), "|---" * (len(QUERIES) + 2) + "|"]
    for driver, title in DRIVERS.items():
        theirs = [number(value, measure.digits) for value in measure.published[driver]]
        lines.append(line(f"{title}, published", *theirs))
        lines.append(line(f"{driver}, their conditions", *_figures(measure, published, driver)))
        lines.append(line(f"{FAIR[driver]}, same conditions", *_figures(measure, fair, FAIR[driver])))
    return "\n".join(lines)


def compared(published: Sequence[Judgement], fair: Sequence[Judgement]) -> str:
    """Does the answer depend on the suite's conditions?"""
    lines = [line("their conclusion", "their conditions", "same conditions", "evidence of the latter")]
    lines.append("|---|---|---|---|")
    for theirs, ours in zip_longest(published, fair):
        cells = (ours.word, ours.evidence) if ours else ("–", "there are no threads")
        lines.append(line(theirs.conclusion, theirs.word, *cells))
    return "\n".join(lines)


def _figures(measure: Measure, run: Run, driver: str) -> list[str]:
    rows = [_row(run, driver, query) for query in QUERIES]
    found = [measure.of(row) if row else None for row in rows]
    known = [each for each in found if each]
    mean = geometric_mean(known) if len(known) == len(QUERIES) else None
    return [text(each, measure.digits) for each in (mean, *found)]


def _row(run: Run, driver: str, query: str) -> Row | None:
    return variant(run, workload=query, layer=driver, mode=MODES[driver])


if __name__ == "__main__":
    run_script(main)
