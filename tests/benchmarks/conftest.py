"""What tests of campaigns share."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest


class NoStack:
    """In place of the servers."""

    env: dict[str, str] = {}
    running: list[Any] = []
    control = None

    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def __enter__(self) -> "NoStack":
        return self

    def __exit__(self, *error: object) -> None: ...


@pytest.fixture
def without_stack(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Call it with a script and the names of its functions that would need a server: they return
    nothing.
    """

    def replace(script: ModuleType, *names: str) -> None:
        monkeypatch.setattr(script, "Stack", NoStack)
        for name in names:
            monkeypatch.setattr(script, name, lambda *args, **kwargs: None)

    return replace
