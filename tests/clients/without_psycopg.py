"""Hides psycopg 3, as in an environment without it."""

import sys
from typing import Any

without: dict[str, Any] = {"psycopg": None}
sys.modules.update(without)
