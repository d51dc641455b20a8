"""Storage of a run in PostgreSQL: one real run of `orm-overhead`, then copies of it.

    python -m benchmarks.growth [--runs 1000] [--quick]

Sizes are those of rows, indexes, and PostgreSQL's further storage of a table (TOAST, maps). The
size per run is the growth by the copies, divided by their number. The bars: a variant's block takes
at most 2 kB, the rest of a run at most 150 kB, and a run among many no more than the first one.
`--quick`: a shorter run and 100 copies, under a minute.
"""

import argparse

import psycopg

from benchmarks.example_site import ROOT, manage
from benchmarks.many_runs import TABLES, connect, copy, measured
from benchmarks.options import ScriptParser, run_script
from example.stack.stack import Stack
from pgperf.runs import block_codec

BLOCK_BAR, REST_BAR = 2_000, 150_000
BLOCKS = TABLES[-1]

Sizes = dict[str, tuple[int, int, int]]


def main() -> int:
    options = _options()
    copies = 100 if options.quick else options.runs
    short = ("--quick", "--blocks=2", "--rounds=3") if options.quick else ()
    with Stack(ROOT / ".stack" / "growth", keep=False) as stack:
        manage(stack.env, "set_up_site")
        with connect(stack.env) as connection:
            empty = _sizes(connection, TABLES)
            run = measured(stack.env, *short)
            connection.execute("VACUUM")
            first = _sizes(connection, TABLES)
            variants = _variants(connection, run)
            copy(connection, run, copies)
            full = _sizes(connection, TABLES)
    share = {table: _less(full[table], first[table], copies) for table in TABLES}
    _print(share, variants, {table: _less(full[table], empty[table], 1) for table in TABLES}, copies)
    return _verdict(share, variants, {table: _less(first[table], empty[table], 1) for table in TABLES})


def _options() -> argparse.Namespace:
    parser = ScriptParser(__doc__)
    parser.add_argument("--runs", type=int, default=1_000)
    return parser.options()


def _sizes(connection: psycopg.Connection, tables: tuple[str, ...]) -> Sizes:
    """Bytes of each table: rows, indexes, further storage (TOAST, maps)."""
    query = "SELECT pg_relation_size(t), pg_indexes_size(t), pg_total_relation_size(t) FROM (SELECT %s::regclass t) s"
    found = {}
    for table in tables:
        row = connection.execute(query, [table]).fetchone()
        assert row
        found[table] = (row[0], row[1], row[2] - row[0] - row[1])
    return found


def _less(one: tuple[int, int, int], other: tuple[int, int, int], shares: int) -> tuple[int, int, int]:
    rows, indexes, toast = (round((a - b) / shares) for a, b in zip(one, other, strict=True))
    return rows, indexes, toast


def _variants(connection: psycopg.Connection, run: int) -> int:
    """The number of variants' blocks of the run."""
    rows = connection.execute("SELECT data FROM pgperf_blockresult WHERE run_id = %s", [run])
    return sum(len(block_codec.decode(bytes(data))) for (data,) in rows)


def _print(share: Sizes, variants: int, full: Sizes, copies: int) -> None:
    print(f"{'bytes per run':<28} {'rows':>9} {'indexes':>9} {'TOAST':>9} {'total':>10}")
    for table in TABLES:
        _line(table.removeprefix("pgperf_"), share[table])
    _line("together", _sum(share))
    total = sum(sum(sizes) for sizes in full.values())
    print(f"\n{variants} variants' blocks in a run: {sum(share[BLOCKS]) / variants:,.0f} bytes each")
    print(f"{copies + 1:,} runs: {total / 1e6:,.1f} MB\n")


def _line(name: str, sizes: tuple[int, int, int]) -> None:
    rows, indexes, toast = sizes
    print(f"{name:<28} {rows:>9,} {indexes:>9,} {toast:>9,} {sum(sizes):>10,}")


def _sum(sizes: Sizes) -> tuple[int, int, int]:
    rows, indexes, toast = (sum(column) for column in zip(*sizes.values(), strict=True))
    return rows, indexes, toast


def _verdict(share: Sizes, variants: int, first: Sizes) -> int:
    block = sum(share[BLOCKS]) / variants
    rest = sum(sum(share[table]) for table in TABLES if table != BLOCKS)
    one, among_many = sum(_sum(first)), sum(_sum(share))
    held = block <= BLOCK_BAR and rest <= REST_BAR and among_many <= one
    print(f"a block {block:,.0f} bytes, the rest {rest:,} bytes; the first run {one:,} bytes")
    print("verdict: " + ("the bar holds" if held else "the bar does NOT hold"))
    return 0 if held else 1


if __name__ == "__main__":
    run_script(main)
