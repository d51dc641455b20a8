"""The Django client in an environment without psycopg 3."""

import runpy
import sys
from typing import Any

without: dict[str, Any] = {"psycopg": None}
sys.modules.update(without)
runpy.run_module("tests.clients.django_with_workloads", run_name="__main__")
