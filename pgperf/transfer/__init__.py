"""Definitions as files: databases with their routes, workloads and benchmarks leave one site and enter another.

The flow: a file -> files.read -> Table -> importing.bring_in -> resources (django-import-export) -> rows; and back by
resources.export -> files.write. Nothing here resolves a credential: its reference travels, its secret does not.
"""
