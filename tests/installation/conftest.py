"""The wheel, built once, and a separate database for each site."""

from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from tests.installation.environments import build_distributions


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    (path,) = build_distributions(tmp_path_factory.mktemp("dist"), "wheel")
    return path


@pytest.fixture(scope="module")
def new_database(stack: dict[str, str]) -> Iterator[Callable[[str], str]]:
    """Creates an empty database for a site, dropped after the module."""
    made: list[str] = []
    with psycopg.connect(stack["PGPERF_DSN_TCP"], autocommit=True) as connection:

        def make(name: str) -> str:
            connection.execute(f'CREATE DATABASE "{name}"'.encode())
            made.append(name)
            return name

        yield make
        for name in made:  # without FORCE, which may not end an autovacuum worker
            connection.execute(f'DROP DATABASE "{name}"'.encode())
