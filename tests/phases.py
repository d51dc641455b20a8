"""Variants whose operations connect, made without a run: the distributions of their phases."""

from pgperf.models import Run, VariantResult

#: The shares of an operation's time. pgbench knows closing only together with connecting.
SHARES: dict[str, dict[str, float | None]] = {
    "libpq": {"connect": 0.7, "operate": 0.2, "close": 0.1},
    "pgbench": {"connect": 0.8, "operate": 0.2, "close": None},
    "django_orm": {"connect": 0.96, "operate": 0.03, "close": 0.01},
}


def add_phases(run: Run) -> Run:
    """Let the variants of the layers in SHARES connect for each operation, ten times as long."""
    rows = [row for row in run.variants.all() if row.layer in SHARES]
    for row in rows:
        row.connect = "per_operation"
        row.ops_per_s /= 10
        row.latency_us = {key: 10 * value for key, value in row.latency_us.items()}
        row.phases_us = {
            name: {key: None if share is None else share * value for key, value in row.latency_us.items()}
            for name, share in SHARES[row.layer].items()
        }
    VariantResult.objects.bulk_update(rows, ["connect", "ops_per_s", "latency_us", "phases_us"])
    return run
