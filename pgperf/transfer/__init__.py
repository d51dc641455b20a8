"""Import and export of definitions: databases with their routes, workloads and benchmarks, as
files.

Import: a file -> files.read -> ImportTable -> importing.import_table -> resources
(django-import-export) -> rows. Export: resources.export -> files.write. Files hold references to
credentials, never secrets.
"""
