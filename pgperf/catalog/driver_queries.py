"""The seven queries of MagicStack's suite for drivers, in our own words: what a driver reads and
writes, from one number to ten thousand rows.
"""

from pgperf.core.records import BulkInsert, WorkloadDefinition

#: The row that COPY and the batch insert, and the types of its columns.
_COLUMNS = ("a", "b", "c", "d", "e", "f", "g")
_TYPES = ("int4", "int4", "int4", "text", "float8", "int4", "text")
_ROW = (10, 11, 10, "TESTTESTTEST", 10.333, 12341234, "123412341234")

COPY_ROWS = BulkInsert("copyfrom", "copy", "pgperf.copyfrom", _COLUMNS, _TYPES, _ROW, 10_000)
BATCH_ROWS = BulkInsert("batch", "batch", "pgperf.batch", _COLUMNS, _TYPES, _ROW, 1_000)

#: By name, as a Workload names them.
BULK_INSERTS = {insert.name: insert for insert in (COPY_ROWS, BATCH_ROWS)}

PG_TYPE = WorkloadDefinition(
    name="pg_type",
    sql=(
        "SELECT typname, typnamespace, typowner, typlen, typbyval, typcategory, typispreferred, typisdefined,"
        " typdelim, typrelid, typelem, typarray FROM pg_type WHERE typtypmod = %s AND typisdefined = %s"
    ),
    args=(-1, True),
)
GENERATE_SERIES = WorkloadDefinition(
    name="generate_series", sql="SELECT i FROM generate_series(1, %s) AS i", args=(1000,)
)
LARGE_OBJECT = WorkloadDefinition(
    name="large_object", sql="SELECT b FROM pgperf.large_object", fixture="large_object"
)
ARRAYS = WorkloadDefinition(name="arrays", sql="SELECT a FROM pgperf.arrays", fixture="arrays")
COPYFROM = WorkloadDefinition(name="copyfrom", sql="", bulk=COPY_ROWS, fixture="copyfrom")
BATCH = WorkloadDefinition(name="batch", sql="", bulk=BATCH_ROWS, fixture="batch")
ONE_PLUS_ONE = WorkloadDefinition(name="oneplusone", sql="SELECT 1 + 1")

SEVEN = (PG_TYPE, GENERATE_SERIES, LARGE_OBJECT, ARRAYS, COPYFROM, BATCH, ONE_PLUS_ONE)
