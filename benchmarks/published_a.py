"""The published results of 2010 beside those measured here: table, phases, cases with several
clients.

    python -m benchmarks.published_a [--single RUN.json --several RUN.json] [--keep DIR] [--rivals N]
        [--quiet-answers DIR] [--quick]

The two runs are those of `pgperf run published-a --json` and `pgperf run eight-clients --json`.
Without files, the script runs both on a separate stack; `--keep` writes them to files, and `--rivals`
lets N processes spin beside them. It prints Markdown: the author's figures beside ours, and an answer
to each of his five conclusions, with the evidence. The answers follow from the runs' comparisons, CPU
accounts and verdicts by the rules in this file; they were written before the first run and made
stricter since. The first answer follows from intervals that allow for what steal and other processes
may have added; other disturbed or uncertain results give the answer unknown. The evidence names the
largest disturbance. A run that is refused because its blocks cannot fit leaves its conclusions
unknown.

`--quiet-answers` compares each answer with that of the quiet runs which `--keep DIR` wrote. Another
answer must be one that the machine can have changed: without what it had of the times or of the host,
a figure of the rule is on the other side of a limit, or may be (benchmarks/machines_part.py).

The bar: all of his configurations and cases are measured, every answer is confirmed, refuted or
qualified, and none is another one without the machine's part in it. `--quick`: the cases of up to 8
clients, with short measurements; the bar does not require answers.
docs/published-results.md has the figures of a full run.
"""

import argparse
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.machines_part import (
    Figure,
    beside_quiet,
    busiest_pooler,
    least_idle,
    most_steal,
    of_ratio,
    pooler_of,
    share_of,
    unexplained,
)
from benchmarks.options import ScriptParser, run_script
from benchmarks.published import (
    CONFIRMED,
    QUALIFIED,
    QUICK,
    REFUSAL,
    REFUTED,
    UNKNOWN,
    Judgement,
    Row,
    Run,
    answers,
    ended,
    line,
    number,
    options_of,
    quiet_run,
    runs,
)
from benchmarks.published_figures import disturbance, disturbed_ratio, known_disturbance, text
from benchmarks.published_rules import inside
from pgperf.analysis.number_text import in_percent
from pgperf.analysis.paired_statistics import Estimate

WANTED = {
    "single": (("published-a",), ("published-a", *QUICK)),
    "several": (("eight-clients",), ("eight-clients", *QUICK, "--clients=4,8")),
}

#: His six configurations: description, our kind of layer (the first measured one counts), our
#: route; real, user and sys in seconds of 10,000 queries.
CONFIGURATIONS = (
    ("Django + psycopg2 via PgBouncer", "django", "pgbouncer", (10.650, 4.217, 0.229)),
    ("Django + psycopg2 direct", "django", "tcp", (10.238, 4.188, 0.219)),
    ("Django + psycopg2 on the database host", "django", "socket", (9.535, 5.814, 0.275)),
    ("C + libpq via PgBouncer", "libpq", "pgbouncer", (4.648, 0.003, 0.031)),
    ("C + libpq direct", "libpq", "tcp", (3.799, 0.004, 0.005)),
    ("C + libpq on the database host", "libpq", "socket", (1.758, 0.048, 0.062)),
)
LAYERS = {"django": ("django_orm_psycopg2", "django_orm"), "libpq": ("libpq",)}

#: His phases of the Python program in seconds, via PgBouncer, directly and locally; our sums of
#: cold phases.
PHASES = (
    ("initial", ("startup", "connect", "first"), (0.307, 0.304, 0.651)),
    ("second", ("second",), (0.00196, 0.00196, 0.00181)),
    ("10 more", ("next_ten",), (0.0145, 0.0197, 0.0110)),
    ("different query 1", ("other_query_first",), (0.00152, 0.00163, 0.00134)),
    ("different query 2", ("other_query_second",), (0.00109, 0.00094, 0.00082)),
)
PHASE_ROUTES = ("pgbouncer", "tcp", "socket")

#: His cases with several clients: description, kind of layer, route, clients; the CPU lines of the
#: client host and of the server host.
CASES = (
    ("8 Python via PgBouncer", "django", "pgbouncer", 8, "12.3 us 1.0 sy 84.2 id", "2.2 us 1.3 sy 95.5 id"),
    ("8 C via PgBouncer", "libpq", "pgbouncer", 8, "1.1 us 4.4 sy 91.5 id", "18.9 us 7.0 sy 71.8 id"),
    ("8 C direct", "libpq", "tcp", 8, "0.6 us 1.3 sy 97.6 id", "16.5 us 7.0 sy 74.2 id"),
    ("16 C direct", "libpq", "tcp", 16, "1.1 us 3.0 sy 94.8 id", "23.5 us 9.6 sy 63.7 id"),
    ("4 C on the database host", "libpq", "socket", 4, "(same host)", "33.5 us 15.4 sy 48.5 id"),
    ("8 C on the database host", "libpq", "socket", 8, "(same host)", "25.9 us 16.0 sy 55.0 id"),
    ("16 C on the database host", "libpq", "socket", 16, "(same host)", "20.8 us 9.3 sy 59.7 id 9.1 st"),
    ("32 C on the database host", "libpq", "socket", 32, "(same host)", "18.1 us 7.2 sy 66.6 id 6.7 st"),
)

#: The limits of the rules. Time of the ORM over libpq; of Django through PgBouncer over without; the
#: share of one CPU of a pooler that is full; local time over TCP; shares of the host.
ORM_OVER_LIBPQ = 1 / 0.6
POOLER_COSTS = (1.02, 1.08)
POOLER_IS_FULL = 0.9
LOCAL_OVER_TCP = {"django": 0.8, "libpq": 0.5}
STOLEN, IDLE = 0.02, 0.1
MISLEADING_IDLE, MISLEADING_TIMES = 0.5, 2


def main() -> int:
    options = options_of(__doc__, WANTED, _add_quiet_answers)
    quiet = _quiet_answers(options)
    single, several = runs("published-a", options, WANTED)
    cases = [case for case in CASES if case[3] <= 8 or not options.quick]
    print("\n\n".join((_table(single), _phases(single), _cases(several, cases))))
    found = judgements(single, several)
    print("\n" + answers(found, "his"))
    other = _compared(found, quiet, deciding(single, several)) if quiet else []
    words, lacking = [each.word for each in found], missing(single, several, cases)
    return ended(lacking, words, "his", quick=options.quick, unexplained=other)


def _add_quiet_answers(parser: ScriptParser) -> None:
    said = "compare each answer with that of the quiet runs that --keep DIR wrote"
    parser.add_argument("--quiet-answers", metavar="DIR", type=Path, help=said)


def _quiet_answers(options: argparse.Namespace) -> list[Judgement]:
    """Those of the quiet runs; none if they are not asked for."""
    if options.quiet_answers is None:
        return []
    if options.quick:
        raise SystemExit("--quiet-answers is for whole runs; leave out --quick")
    folder = options.quiet_answers
    return judgements(
        *(quiet_run(folder, f"published-a-{name}", words) for name, (words, _) in WANTED.items())
    )


def _compared(
    found: Sequence[Judgement], quiet: Sequence[Judgement], figures: Sequence[Sequence[Figure]]
) -> list[str]:
    print("\n" + beside_quiet(found, quiet, figures))
    return unexplained(found, quiet, figures)


def missing(single: Run, several: Run, cases: Iterable[tuple[Any, ...]]) -> list[str]:
    """His configurations and cases that were not measured."""
    configurations = [words for words, kind, route, _ in CONFIGURATIONS if not _row(single, kind, route)]
    return configurations + [
        words for words, kind, route, clients, *_ in cases if not _row(several, kind, route, clients)
    ]


def judgements(single: Run, several: Run) -> list[Judgement]:
    """The answers to his five conclusions; each has its own rule. The evidence ends in what the
    machine had of the times.
    """
    found = [
        (_orm_is_the_bottleneck(single), (single,)),
        (_pooler_costs_little_and_saturates(single, several), (single, several)),
        (_network_matters(single), (single,)),
        (_other_ceilings(several), (several,)),
        (_utilisation_misleads(_rows(single, several)), (single, several)),
    ]
    return [_refused(judgement, used) or _with_machine(judgement, _rows(*used)) for judgement, used in found]


def _rows(*used: Run) -> list[Row]:
    return [row for run in used for row in run["variants"]]


def _refused(judgement: Judgement, used: Iterable[Run]) -> Judgement | None:
    """The judgement without a run that it needs; None if none was refused."""
    why = next((run[REFUSAL] for run in used if run.get(REFUSAL)), "")
    return replace(judgement, word=UNKNOWN, evidence=f"a run was refused: {why}") if why else None


def _with_machine(judgement: Judgement, rows: Iterable[Row]) -> Judgement:
    """The judgement, whose evidence also has the most disturbed of the rows that it was made from, and
    one whose disturbances are not all known.
    """
    measured = [row for row in rows if not row["control"] and row["us_per_op"]]
    said = [judgement.evidence]
    row = max(measured, key=known_disturbance, default=None)
    if row and known_disturbance(row):
        why = row["verdict"]["grade"].get("evidence")
        share = f"disturbances had at most {in_percent(known_disturbance(row), 1)} of a time"
        said.append(f"{share} ({row['label']}{f': {why}' if why else ''})")
    if unknown := next((row["label"] for row in measured if disturbance(row) is None), ""):
        said.append(f"not all disturbances are known ({unknown})")
    return replace(judgement, evidence="; ".join(said))


def deciding(single: Run, several: Run) -> list[list[Figure]]:
    """The figures that the answer to each conclusion depends on, with the limits of its rule."""
    many, local = several["variants"], LOCAL_OVER_TCP
    pooled = _of_times(single, ("django", "pgbouncer"), ("django", "tcp"), *POOLER_COSTS)
    layers = [
        figure
        for route in PHASE_ROUTES
        for figure in _of_times(single, ("django", route), ("libpq", route), ORM_OVER_LIBPQ)
    ]
    near = [f for kind in local for f in _of_times(single, (kind, "socket"), (kind, "tcp"), 1, local[kind])]
    far = [f for kind in local for f in _of_times(single, (kind, "distance_05ms"), (kind, "tcp"), 1)]
    return [
        layers,
        [*pooled, *busiest_pooler(many, POOLER_IS_FULL)],
        [*near, *far],
        [*most_steal(many, STOLEN), *least_idle(filter(_decided, many), IDLE)],
        _of_the_slowest(_rows(single, several)),
    ]


def _of_times(run: Run, one: tuple[str, str], other: tuple[str, str], *limits: float) -> Iterable[Figure]:
    """The time of a kind and route over that of another one, if both were measured."""
    row, base = _row(run, *one), _row(run, *other)
    return [of_ratio(run, row, base, *limits)] if row and base else []


def _of_the_slowest(rows: Sequence[Row]) -> list[Figure]:
    known = _slow_and_idle(rows)
    if not known:
        return []
    _share, _times, row, base = _most_misleading(known)
    times = of_ratio({"comparisons": ()}, row, base, MISLEADING_TIMES)
    return [times, *least_idle([row], MISLEADING_IDLE)]


def _orm_is_the_bottleneck(single: Run) -> Judgement:
    """Confirmed: on every route surely 40 % of the ORM's time is above libpq, and no verdict is
    another one than client_cpu. A disturbed verdict says nothing of the client's part: the interval,
    which allows for the disturbances, settles the answer alone. Unknown where it is not known.
    """
    conclusion = "The ORM and the driver, not the database, are the bottleneck (about 50 %)"
    rows = [row for route in PHASE_ROUTES if (row := _row(single, "django", route))]
    bases = [row for route in PHASE_ROUTES if (row := _row(single, "libpq", route))]
    if min(len(rows), len(bases)) < len(PHASE_ROUTES):
        return Judgement(conclusion, UNKNOWN, "not measured on every route")
    ratios = [disturbed_ratio(single, row, base) for row, base in zip(rows, bases, strict=True)]
    near = [inside(ratio, ORM_OVER_LIBPQ, math.inf) for ratio in ratios]
    client = [row["verdict"]["word"] == "client_cpu" if _decided(row) else None for row in rows]
    word = _of_the_client(near, client, has_intervals=all(ratio.low is not None for ratio in ratios))
    return Judgement(conclusion, word, _above_libpq(rows, ratios))


def _of_the_client(
    near: Sequence[bool | None], client: Sequence[bool | None], *, has_intervals: bool = True
) -> str:
    """The answer, from what each route says of the ratio and of the client's part."""
    if set(client) == {False} or (set(near) == {False} and True not in client):
        return REFUTED
    if None in near and (None in client or not has_intervals):
        return UNKNOWN
    return CONFIRMED if all(near) and False not in client else QUALIFIED


def _above_libpq(rows: Sequence[Row], ratios: Sequence[Estimate]) -> str:
    times = "; ".join(f"{row['route']} {text(ratio)}" for row, ratio in zip(rows, ratios, strict=True))
    share = ", ".join(in_percent(_above(ratio.centre)) for ratio in ratios)
    his = ", ".join(
        in_percent(_above(_his("django", route) / _his("libpq", route))) for route in PHASE_ROUTES
    )
    words = ", ".join(str(row["verdict"]["word"]) for row in rows)
    return (
        f"time over libpq: {times}; so {share} of the time is above libpq (by his table {his}); "
        f"verdicts: {words}"
    )


def _pooler_costs_little_and_saturates(single: Run, several: Run) -> Judgement:
    """Confirmed: the cost is 2 to 8 % for Django, and the pooler uses 90 % of a CPU in some case."""
    conclusion = "PgBouncer costs about 5 % and saturates at scale"
    found = {kind: _between(single, kind, "pgbouncer", "tcp") for kind in ("django", "libpq")}
    django, libpq = found["django"], found["libpq"]
    if not django or not libpq or django[2] - django[1] > 0.1:
        return Judgement(conclusion, UNKNOWN, f"not known to 5 %: Django {_times(django)}, C {_times(libpq)}")
    least, most = POOLER_COSTS
    little = least <= django[0] <= most
    full, said = _saturates(several["variants"])
    word = CONFIRMED if little and full else REFUTED if not little and full is False else QUALIFIED
    times = f"time over a direct connection: Django {_times(django)}, C {_times(libpq)}; "
    return Judgement(conclusion, word, times + said)


def _saturates(rows: Iterable[Row]) -> tuple[bool | None, str]:
    """Whether the pooler uses 90 % of a CPU in some case.

    None: unknown, or the clients left the pooler too little CPU time.
    """
    known = sorted((row for row in rows if pooler_of(row)), key=pooler_of, reverse=True)
    if not known:
        return None, "how busy the pooler was is not known"
    most = pooler_of(known[0])
    full = [row for row in known if pooler_of(row) >= POOLER_IS_FULL]
    if full:
        first = min(full, key=lambda row: int(row["clients"]))["label"]
        return True, f"90 % of one CPU first at: {first} (at most {in_percent(most)} anywhere)"
    busy = [row for row in known if pooler_of(row) >= most / 2]
    kept = [f"at {row['label']} {why}" for row in busy if (why := _kept_from_more(row))]
    if kept:
        return None, f"at most {in_percent(most)} of one CPU, but {kept[0]}"
    return False, f"90 % of one CPU in no case (at most {in_percent(most)} anywhere)"


def _kept_from_more(row: Row) -> str:
    """Why the pooler may have had too little CPU time; "" if it could have used more."""
    capacity = (row["verdict"].get("checks") or {}).get("capacity") or {}
    if capacity.get("withheld"):
        return f"that CPU is also the clients', which left it no more ({capacity['why']})"
    return "" if capacity.get("withheld") is False else "how busy the clients' CPUs were is not known"


def _network_matters(single: Run) -> Judgement:
    """Confirmed: locally a fifth less time for Django and half of it for C, and more with a delay,
    if measured.
    """
    conclusion = "Network latency matters: local is about 30 % faster for Django, 2.5 times for C"
    local = {kind: _between(single, kind, "socket", "tcp") for kind in ("django", "libpq")}
    far = {kind: _between(single, kind, "distance_05ms", "tcp") for kind in ("django", "libpq")}
    known = {"the local socket": local, "0.5 ms of delay": far}
    said = [
        f"{where}, time over TCP on the same host: Django {_times(ratios['django'])}, C {_times(ratios['libpq'])}"
        for where, ratios in known.items()
        if ratios["django"] and ratios["libpq"]
    ]
    django, libpq = local["django"], local["libpq"]
    if not django or not libpq:
        return Judgement(conclusion, UNKNOWN, "not measured on the socket and over TCP")
    his = [_his(kind, "socket") / _his(kind, "tcp") for kind in ("django", "libpq")]
    ratios = [django, libpq]
    ratios += [(1 / mid, 1 / high, 1 / low) for mid, low, high in filter(None, far.values()) if low > 0]
    helped, hurt = [high < 1 for _, _, high in ratios], [low >= 1 for _, low, _ in ratios]
    near = django[0] <= LOCAL_OVER_TCP["django"] and libpq[0] <= LOCAL_OVER_TCP["libpq"]
    word = (
        CONFIRMED if all(helped) and near else QUALIFIED if any(helped) else REFUTED if all(hurt) else UNKNOWN
    )
    said.append(f"by his table Django {his[0]:.2f}, C {his[1]:.2f} on the database's own host")
    return Judgement(conclusion, word, "; ".join(said))


def _other_ceilings(several: Run) -> Judgement:
    """Confirmed: 2 % steal or more in some case. Qualified: less steal, but no idle CPU time."""
    conclusion = "Other ceilings come first (steal)"
    rows = several["variants"]
    steal = [share for row in rows if (share := share_of(row, "steal")) is not None]
    idle = [share for row in rows if _decided(row) and (share := share_of(row, "idle")) is not None]
    if not steal or not (idle or max(steal) >= STOLEN):
        return Judgement(conclusion, UNKNOWN, "no CPU account of the host, or none undisturbed")
    idle = idle or [0.0]
    word = CONFIRMED if max(steal) >= STOLEN else QUALIFIED if min(idle) < IDLE else REFUTED
    return Judgement(
        conclusion,
        word,
        f"stolen in one case at most {in_percent(max(steal), 1)} of the host; idle at least {in_percent(min(idle))}",
    )


def _utilisation_misleads(rows: Sequence[Row]) -> Judgement:
    """Confirmed: half of the host or more was idle while an operation took twice the layer's
    shortest. A variant that is the only one of its layer tells nothing: it is the shortest itself.
    """
    conclusion = "CPU utilisation misleads: neither side is busy, yet it is slow"
    if all(share_of(row, "idle") is None for row in _alone(rows)):
        return Judgement(conclusion, UNKNOWN, "no CPU account of the host, or none undisturbed")
    known = _slow_and_idle(rows)
    if not known:
        return Judgement(conclusion, UNKNOWN, "no layer has two undisturbed variants to compare")
    share, times, row, _fastest = _most_misleading(known)
    idle, slow = share >= MISLEADING_IDLE, times >= MISLEADING_TIMES
    word = CONFIRMED if idle and slow else QUALIFIED if idle else REFUTED
    said = (
        f"{row['label']}: {in_percent(share)} idle while an operation took {times:.2f} times the layer's"
        f" shortest; verdict {row['verdict']['word']}"
    )
    return Judgement(conclusion, word, said)


def _alone(rows: Iterable[Row]) -> list[Row]:
    """The undisturbed ones of a single client."""
    return [row for row in rows if row["clients"] == 1 and row["us_per_op"] and _decided(row)]


def _slow_and_idle(rows: Iterable[Row]) -> list[tuple[float, float, Row, Row]]:
    """Of each layer with two variants or more: the idle share of the host, the time over that of the
    layer's fastest variant, the variant, and that fastest one.
    """
    alone, fastest = _alone(rows), dict[str, Row]()
    for row in alone:
        fastest[row["layer"]] = min(fastest.get(row["layer"], row), row, key=lambda each: each["us_per_op"])
    layers = Counter(layer for layer, _label in {(row["layer"], row["label"]) for row in alone})
    return [
        (idle, row["us_per_op"] / base["us_per_op"], row, base)
        for row in alone
        if (idle := share_of(row, "idle")) is not None
        and layers[row["layer"]] > 1
        and (base := fastest[row["layer"]])
    ]


def _most_misleading(known: Sequence[tuple[float, float, Row, Row]]) -> tuple[float, float, Row, Row]:
    return max(known, key=lambda each: (each[0] >= MISLEADING_IDLE) * each[1])


def _row(run: Run, kind: str, route: str, clients: int = 1) -> Row | None:
    """The variant of that kind, with the first of its layers that was measured."""
    rows = {
        (row["layer"], row["route"], row["clients"]): row
        for row in run["variants"]
        if not row["control"] and row["us_per_op"]
    }
    found = (rows.get((layer, route, clients)) for layer in LAYERS[kind])
    return next((row for row in found if row), None)


def _over(run: Run, variant: str, baseline: str) -> tuple[float, float, float] | None:
    """Time over the baseline's, with its interval."""
    for row in run["comparisons"]:
        if (row["variant"], row["baseline"]) == (variant, baseline) and row["low"] is not None:
            return row["ratio"], row["low"], row["high"]
    return None


def _between(run: Run, kind: str, route: str, other: str) -> tuple[float, float, float] | None:
    one, two = _row(run, kind, route), _row(run, kind, other)
    return _over(run, one["label"], two["label"]) if one and two else None


def _above(ratio: float) -> float:
    """Share of the time that is more than the baseline's."""
    return 1 - 1 / ratio


def _his(kind: str, route: str) -> float:
    """Real seconds of his 10,000 queries."""
    return next(real for _, what, how, (real, _, _) in CONFIGURATIONS if (what, how) == (kind, route))


def _decided(row: Row) -> bool:
    """True if it has a verdict other than unknown and disturbed."""
    return row["verdict"]["word"] not in (None, "unknown", "disturbed")


def _times(ratio: tuple[float, float, float] | None) -> str:
    return "unknown" if ratio is None else f"{ratio[0]:.2f} ({ratio[1]:.2f} to {ratio[2]:.2f})"


def _table(single: Run) -> str:
    lines = [
        "| 10,000 queries | real s, 2010 | here | user s, 2010 | here | sys s, 2010 | here | queries/s, 2010 | here |",
        "|---" * 9 + "|",
    ]
    for words, kind, route, (real, user, system) in CONFIGURATIONS:
        row = _row(single, kind, route) or {"us_per_op": None, "ops_per_s": None, "cpu_us_per_op": {}}
        cpu = row["cpu_us_per_op"]
        ours = [
            _of_10k(row["us_per_op"]), _of_10k(cpu.get("client_user")), _of_10k(cpu.get("client_sys")),
            number(row["ops_per_s"], 0),
        ]  # fmt: skip
        theirs = [f"{real:.3f}", f"{user:.3f}", f"{system:.3f}", f"{10_000 / real:.0f}"]
        lines.append(line(words, *(cell for pair in zip(theirs, ours, strict=True) for cell in pair)))
    return "\n".join(lines)


def _phases(single: Run) -> str:
    heads = [f"{route}, 2010 | here" for route in PHASE_ROUTES]
    lines = [f"| ms | {' | '.join(heads)} |", "|---" * (2 * len(heads) + 1) + "|"]
    rows = [_row(single, "django", route) for route in PHASE_ROUTES]
    for words, names, seconds in PHASES:
        ours = [_cold_ms(row, names) for row in rows]
        pairs = [
            (f"{1000 * theirs:.2f}", number(mine, 2)) for theirs, mine in zip(seconds, ours, strict=True)
        ]
        lines.append(line(words, *(cell for pair in pairs for cell in pair)))
    return "\n".join(lines)


def _cold_ms(row: Row | None, names: Sequence[str]) -> float | None:
    us = [row["cold_us"].get(name) if row else None for name in names]
    return None if None in us else sum(value for value in us if value is not None) / 1000


def _cases(several: Run, cases: Iterable[tuple[Any, ...]]) -> str:
    lines = [
        "| case | client host, 2010 | server host, 2010 | the one host here | clients | pooler | backends |"
        " queries/s | verdict |",
        "|---" * 9 + "|",
    ]
    for words, kind, route, clients, theirs, server in cases:
        row = _row(several, kind, route, clients)
        lines.append(line(words, theirs, server, *(_case(row) if row else ["not measured"] + [""] * 5)))
    return "\n".join(lines)


def _case(row: Row) -> list[str]:
    top = row["top"] or {}
    host = top.get("host") or {}
    said = [f"{host[name]:.1f} {name}" for name in ("us", "sy", "id", "wa", "si", "st") if host.get(name)]
    said += [f"load {host['load1']:.2f}"] if host.get("load1") is not None else []
    roles = [_percents(top.get("processes") or (), role) for role in ("clients", "pooler", "server")]
    return [" ".join(said), *roles, number(row["ops_per_s"], 0), str(row["verdict"]["word"])]


def _percents(processes: Iterable[Row], role: str) -> str:
    """The least and the greatest share of one CPU that a process of the role used."""
    percents = [p["cpu_percent"] for p in processes if p["role"] == role and p["cpu_percent"] is not None]
    return f"{min(percents):.0f}-{max(percents):.0f} %" if percents else ""


def _of_10k(us: float | None) -> str:
    return number(None if us is None else us / 100, 3)


if __name__ == "__main__":
    run_script(main)
