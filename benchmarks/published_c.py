"""What a connection pooler saves (Cybertec): the published table beside the one measured here.

    python -m benchmarks.published_c [--trust RUN.json --scram RUN.json]
        [--keep DIR] [--rivals N] [--quick]

The two runs are those of the catalog's `connection-cost`, by pgbench with one thread and with a
thread for each client, and by libpq: over the routes tcp_trust and pgbouncer_trust, whose logins
are without a password, presumably as published, and over tcp and pgbouncer. Without files, the
script runs both on a separate stack; `--keep` writes them to files. It prints Markdown: the
published figures beside ours, and an answer to both conclusions for each authentication, by the
rules of `benchmarks/published_rules.py`. The bar: both conclusions are answered. `--quick`: short
measurements of pgbench with one thread alone, which only show that everything works.
"""

from collections.abc import Iterable

from benchmarks.options import run_script
from benchmarks.published import Row, Run, answers, ended, line, number, options_of, runs
from benchmarks.published_figures import per_s, text, variant
from benchmarks.published_rules import CLIENTS, LAYER, SCRAM, TRUST, Login, pooling, saving

#: Our layers with their titles. The first one is as published.
LAYERS = {LAYER: "pgbench -j 1", "pgbench": "pgbench -j 20", "libpq": "libpq"}
#: Without the Python layers, which take most of a block to start, ten minutes have many blocks.
_FULL = (f"--layers={','.join(LAYERS)}", "--budget-s=600")
_QUICK = ("--blocks=2", "--rounds=1", "--slice-ms=100", "--diagnostic-ms=0", f"--layers={LAYER}")
WANTED = {
    name: (
        ("connection-cost", f"--routes={login.direct},{login.pooled}", *_FULL),
        ("connection-cost", f"--routes={login.direct},{login.pooled}", *_QUICK),
    )
    for name, login in (("trust", TRUST), ("scram", SCRAM))
}
#: Published transactions per second: including connecting, excluding it.
DIRECT, POOLED = (67.5, 15423), (1013, 2766)


def main() -> int:
    options = options_of(__doc__, WANTED)
    measured = list(zip((TRUST, SCRAM), runs("published-c", options, WANTED), strict=True))
    for login, run in measured:
        print(f"{login.title}:\n\n{including(run, login)}\n\n{excluding(run, login)}\n")
    found = [judgement for login, run in measured for judgement in pooling(run, login)]
    print(answers(found, "his"))
    lacking = [name for login, run in measured for name in missing(run, login)]
    return ended(lacking, [each.word for each in found], "his", quick=options.quick)


def missing(run: Run, login: Login) -> list[str]:
    """The published configurations that were not measured."""
    wanted = [(route, connect) for route in (login.direct, login.pooled) for connect in _CONNECT]
    return [
        f"{LAYER} · {route} · {connect}" for route, connect in wanted if not _row(run, LAYER, route, connect)
    ]


_CONNECT = ("per_operation", "persistent")


def including(run: Run, login: Login) -> str:
    """A connection for each transaction: transactions per second."""
    titles = [f"{title}, here" for title in LAYERS.values()]
    lines = [line("tps including connecting", "published", *titles), "|---" * (len(titles) + 2) + "|"]
    for words, route, published in _routes(login):
        cells = [_rate(_row(run, layer, route, "per_operation")) for layer in LAYERS]
        lines.append(line(words, number(published[0], 1), *cells))
    savings = [text(saving(run, login, layer, "per_operation")) for layer in LAYERS]
    return "\n".join([*lines, line("pooled over direct", f"{POOLED[0] / DIRECT[0]:.1f}", *savings)])


def excluding(run: Run, login: Login) -> str:
    """Transactions per second without connecting: kept connections, and by two formulas from those
    that are not kept.
    """
    kept = [f"{title}, kept connections" for title in LAYERS.values()]
    formulas = [f"{LAYERS[LAYER]}, N / O", "libpq, N / O", "libpq, by old pgbench"]
    lines = [line("tps excluding connecting", "published", *kept, *formulas), "|---" * 8 + "|"]
    for words, route, published in _routes(login):
        cells = [_rate(_row(run, layer, route, "persistent")) for layer in LAYERS]
        computed = [_without(run, LAYER, route, "excluding")]
        computed += [_without(run, "libpq", route, name) for name in ("excluding", "excluding_pgbench")]
        lines.append(line(words, number(published[1], 0), *cells, *computed))
    savings = [text(saving(run, login, layer, "persistent")) for layer in LAYERS]
    last = line("pooled over direct", f"{POOLED[1] / DIRECT[1]:.2f}", *savings, *[""] * len(formulas))
    return "\n".join([*lines, last])


def _routes(login: Login) -> Iterable[tuple[str, str, tuple[float, float]]]:
    return (("direct", login.direct, DIRECT), ("via PgBouncer", login.pooled, POOLED))


def _row(run: Run, layer: str, route: str, connect: str) -> Row | None:
    return variant(run, layer=layer, route=route, clients=CLIENTS, connect=connect)


def _rate(row: Row | None) -> str:
    return text(per_s(row) if row else None, 0)


def _without(run: Run, layer: str, route: str, formula: str) -> str:
    """The centre alone: a formula on mean times has no interval here."""
    row = _row(run, layer, route, "per_operation")
    return number(((row or {}).get("connection_throughput") or {}).get(formula), 0)


if __name__ == "__main__":
    run_script(main)
