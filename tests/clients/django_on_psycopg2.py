"""The Django client in an environment without psycopg 3."""

import runpy

import tests.clients.without_psycopg  # noqa: F401 (its import hides it)

runpy.run_module("tests.clients.django_with_workloads", run_name="__main__")
