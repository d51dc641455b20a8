"""Load hosts: Celery workers of the site that make the load of a run which another worker owns.

The two talk through one row for each host, `LoadShare`. The owner (`controller`) writes orders into
it. The host (pgperf.worker.load_share) starts its part of the clients, runs slices at the times that
it is given, answers, and looks for the next order; `answers` checks what it said, `rows` holds the
queries. A message on a host's queue only says which row.
"""
