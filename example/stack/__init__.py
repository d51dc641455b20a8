"""The embedded stack: PostgreSQL, PgBouncer, Redis, a Celery worker and the site, for demo, tests
and benchmarks.

    from example.stack.stack import Stack
    with Stack(directory) as stack:      # starts PostgreSQL, PgBouncer and Redis for this process
        stack.env["PGPERF_DSN_TCP"]      # one of the variables of stack.env

`python -m example.stack up|down|run|exec|clean` does the same from a shell.
"""
