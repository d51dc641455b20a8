"""The agent on a database's host: a Celery worker of the site that reads there what the owner of a
run cannot see.

They talk through one row, `Sampling`. The owner (`controller`) writes an order into it, the agent
(`service`) carries it out, answers, and looks for the next one; `rows` holds every query, `clock`
asks the database both of them write to for its time. A message on the agent's queue only says which
row. While a run measures the agent reads into memory.
"""
