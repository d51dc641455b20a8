"""Environments for tests that cannot be used."""

from pathlib import Path

from benchmarks.twin import packages, twin
from pgperf.core.client_environment import ClientEnvironment


def with_other_pgperf(directory: Path, version: str, name: str = "stub") -> ClientEnvironment:
    """A twin that has a stub of pgperf in another version."""
    environment = twin(directory, name)
    package = packages(environment) / "pgperf"
    package.mkdir()
    (package / "__init__.py").write_text(f'__version__ = "{version}"\n')
    return environment
