"""How much does a run take in the database? One real run of `orm-overhead`, then copies of it, in PostgreSQL.

    python -m benchmarks.growth [--runs 1000] [--quick]

Sizes are pg_relation_size's: rows, indexes, and what lies beside the rows (TOAST, maps). A run's share is what the
copies added, divided by their number. `blocks as JSON` is the same blocks as plain jsonb with base64 histograms and
one more index, the format that runs/block_codec.py replaced. The bar: a variant's block takes at most 2 kB,
the rest of a run at most 100 kB, and a run among many no more than the first one. `--quick`: a shorter run, 100
copies, under a minute.
"""

import argparse
import base64
import json
import sys

import psycopg
from psycopg.types.json import Jsonb

from benchmarks.example_site import ROOT, manage
from benchmarks.many_runs import TABLES, connect, copy, measured
from example.stack import Stack
from pgperf.runs import block_codec

BLOCK_BAR, REST_BAR = 2_000, 100_000
BLOCKS = TABLES[-1]
FORMER = "growth_blocks_as_json"
_HISTOGRAM_HEADER = bytes.fromhex("1c849314")

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
            rows = _count(connection, run)
            copy(connection, run, copies)
            full = _sizes(connection, TABLES)
            former = _former(connection, run, max(1, copies // 10))
    share = {table: _less(full[table], first[table], copies) for table in TABLES}
    _print(share, former, rows, {table: _less(full[table], empty[table], 1) for table in TABLES}, copies)
    return _verdict(share, rows, {table: _less(first[table], empty[table], 1) for table in TABLES})


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=1_000)
    parser.add_argument("--quick", action="store_true")
    return parser.parse_args()


def _sizes(connection: psycopg.Connection, tables: tuple[str, ...]) -> Sizes:
    """Bytes of each table: its rows, its indexes, what lies beside."""
    query = "SELECT pg_relation_size(t), pg_indexes_size(t), pg_total_relation_size(t) FROM (SELECT %s::regclass t) s"
    found = {}
    for table in tables:
        row = connection.execute(query, [table]).fetchone()
        assert row
        found[table] = (row[0], row[1], row[2] - row[0] - row[1])
    return found


def _less(one: tuple[int, int, int], other: tuple[int, int, int], shares: int) -> tuple[int, int, int]:
    rows, indexes, beside = (round((a - b) / shares) for a, b in zip(one, other, strict=True))
    return rows, indexes, beside


def _count(connection: psycopg.Connection, run: int) -> int:
    row = connection.execute("SELECT count(*) FROM pgperf_blockresult WHERE run_id = %s", [run]).fetchone()
    assert row
    return int(row[0])


def _former(connection: psycopg.Connection, run: int, copies: int) -> tuple[int, int, int]:
    """What the blocks of one run took as JSON."""
    connection.execute(
        f"CREATE TABLE {FORMER} (id bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY, attempt integer NOT NULL, "
        "variant varchar(200) NOT NULL, cohort smallint NOT NULL, block smallint NOT NULL, data jsonb NOT NULL, "
        "histogram bytea NOT NULL, run_id bigint NOT NULL, UNIQUE (run_id, variant, cohort, block))"
    )
    connection.execute(f"CREATE INDEX ON {FORMER} (run_id)")
    stored = connection.execute(
        "SELECT attempt, variant, cohort, block, packed, histogram FROM pgperf_blockresult WHERE run_id = %s",
        [run],
    ).fetchall()
    insert = f"INSERT INTO {FORMER} (attempt, variant, cohort, block, data, histogram, run_id) "
    for number in range(copies):
        with connection.cursor() as cursor:
            cursor.executemany(
                insert + "VALUES (%s, %s, %s, %s, %s, %s, %s)",
                [(*row[:4], Jsonb(_plain(row[4])), _as_text(row[5]), number) for row in stored],
            )
    connection.execute("VACUUM")
    return _less(_sizes(connection, (FORMER,))[FORMER], (0, 0, 0), copies)


def _plain(packed: bytes) -> dict[str, object]:
    return dict(json.loads(json.dumps(block_codec.unpack(packed))))


def _as_text(histogram: bytes) -> bytes:
    return base64.b64encode(_HISTOGRAM_HEADER + len(histogram).to_bytes(4, "big") + histogram)


def _print(share: Sizes, former: tuple[int, int, int], rows: int, full: Sizes, copies: int) -> None:
    print(f"{'bytes per run':<28} {'rows':>9} {'indexes':>9} {'beside':>9} {'total':>10}")
    for table in TABLES:
        _line(table.removeprefix("pgperf_"), share[table])
    _line("together", _sum(share))
    _line("(blocks as JSON)", former)
    total = sum(sum(sizes) for sizes in full.values())
    print(f"\n{rows} blocks of variants in a run: {sum(share[BLOCKS]) / rows:,.0f} bytes each")
    print(f"{copies + 1:,} runs: {total / 1e6:,.1f} MB\n")


def _line(name: str, sizes: tuple[int, int, int]) -> None:
    rows, indexes, beside = sizes
    print(f"{name:<28} {rows:>9,} {indexes:>9,} {beside:>9,} {sum(sizes):>10,}")


def _sum(sizes: Sizes) -> tuple[int, int, int]:
    rows, indexes, beside = (sum(column) for column in zip(*sizes.values(), strict=True))
    return rows, indexes, beside


def _verdict(share: Sizes, rows: int, first: Sizes) -> int:
    block = sum(share[BLOCKS]) / rows
    rest = sum(sum(share[table]) for table in TABLES if table != BLOCKS)
    one, among_many = sum(_sum(first)), sum(_sum(share))
    held = block <= BLOCK_BAR and rest <= REST_BAR and among_many <= one
    print(f"a block {block:,.0f} bytes, the rest {rest:,} bytes; the first run {one:,} bytes")
    print("verdict: " + ("the bar holds" if held else "the bar does NOT hold"))
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
