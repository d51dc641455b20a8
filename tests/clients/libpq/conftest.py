"""The C client's modules, compiled once for the test programs that are linked to them."""

from pathlib import Path

import pytest

from tests.clients.libpq.programs import compile_modules


@pytest.fixture(scope="session")
def modules(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Their objects, with the sanitizers."""
    return compile_modules(tmp_path_factory.mktemp("modules"))
