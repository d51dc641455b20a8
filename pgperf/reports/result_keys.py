"""The keys of a variant's nested results, in the order of tables, JSON and CSV: each is there, null
where unknown.
"""

from pgperf.analysis import cpu_account
from pgperf.analysis.variant_summary import COLD_PHASES

LATENCY = ("min", "mean", "stddev", "variation", "p50", "p90", "p95", "p99", "max")
COLD = COLD_PHASES
#: The phases of an operation that connects; each has the keys of LATENCY.
PHASES = ("connect", "operate", "close")
#: Those of an HTTP request beside connect, likewise.
HTTP_PHASES = ("first_byte", "receive")
#: The parts of the latency in an open loop, likewise.
OPEN_PHASES = ("lag", "service")
#: Of a variant's HTTP requests, as files name them.
HTTP = ("requests", "errors", "kept_share", "least_bytes", "most_bytes")
OPEN_LOOP = ("due", "ended", "late", "skipped", "backlog", "offered_per_s", "achieved_per_s", "held")
CONNECTION_THROUGHPUT = ("including", "excluding", "excluding_pgbench")
#: CPU time per operation by role, µs.
CPU = (
    "client_user", "client_sys", "proxy", "web", "pooler", "server", "auxiliaries", "other", "unattributed",
)  # fmt: skip
#: Those of them that serve the operation; the others take their time beside it.
SERVING = CPU[:7]
#: Shares of the host's CPUs over the time that was measured.
SHARE = (
    "clients", "proxy", "web", "pooler", "server", "auxiliaries", "other", "unattributed", "iowait", "steal", "idle",
)  # fmt: skip
WAIT = cpu_account.ROLES
SWITCHES = cpu_account.SWITCHES
HOST = ("us", "sy", "ni", "id", "wa", "hi", "si", "st", "load1", "load5", "load15")
PROCESS = ("role", "pid", "name", "user", "cpu_percent", "rss_bytes", "cpu_s")
#: What backends were found doing; PostgreSQL's own classes, and "CPU" for none.
WAIT_EVENTS = (
    "CPU", "Client", "IO", "LWLock", "Lock", "IPC", "BufferPin", "Timeout", "Activity", "Extension",
)  # fmt: skip
POOLER = (
    "queries", "queries_per_op", "wait_us_per_query", "query_us_per_query", "sv_idle_min", "sv_active_max",
    "cl_active_max", "cl_waiting_max", "maxwait_us_max", "pool_mode",
)  # fmt: skip
STATEMENTS = ("calls_per_op", "rows_per_op", "as_expected")
VERDICT = (
    "word", "certainty", "evidence", "grade", "lead", "finding", "numbers", "checks", "missing", "intervention",
    "confirmation",
)  # fmt: skip
