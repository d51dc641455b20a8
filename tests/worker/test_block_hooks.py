"""The hooks that start a site's web servers anew before a block."""

import pytest
from celery.exceptions import SoftTimeLimitExceeded

from pgperf import registry
from pgperf.core.exceptions import HookFailed
from pgperf.core.records import Route
from pgperf.registry import BlockStart
from pgperf.worker.block_hooks import begin_block

ROUTES = {
    "tcp": Route("tcp", "127.0.0.1", 5432, "shop", "shop", "secret"),
    "web": Route("web", "127.0.0.1", 8000, "", "", "", url="http://127.0.0.1:8000"),
    "web+45ms": Route("web+45ms", "127.0.0.1", 9000, "", "", "", url="http://127.0.0.1:8000"),
}


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[BlockStart]:
    """What a hook was called with."""
    monkeypatch.setattr(registry, "BLOCK_HOOKS", {})
    starts: list[BlockStart] = []

    @registry.before_block
    def note(start: BlockStart) -> None:
        starts.append(start)

    return starts


@pytest.mark.parametrize("names", [["web"], ["web+45ms"], ["tcp", "web", "web+45ms"]])
def test_a_hook_gets_the_block_and_the_web_routes(seen: list[BlockStart], names: list[str]) -> None:
    begin_block(ROUTES, 3, names)
    assert seen == [BlockStart(3, {"web": "http://127.0.0.1:8000"})]


def test_blocks_without_web_routes_call_no_hook(seen: list[BlockStart]) -> None:
    begin_block(ROUTES, 0, ["tcp"])
    assert seen == []


def test_a_failure_names_the_hook_and_ends_the_run(seen: list[BlockStart]) -> None:
    @registry.before_block
    def breaks(start: BlockStart) -> None:
        raise OSError("no stack")

    with pytest.raises(HookFailed, match=r"test_block_hooks\.\S+\.breaks, before block 1: no stack"):
        begin_block(ROUTES, 0, ["web"])


def test_a_time_limit_stays_one(seen: list[BlockStart]) -> None:
    @registry.before_block
    def slow(start: BlockStart) -> None:
        raise SoftTimeLimitExceeded

    with pytest.raises(SoftTimeLimitExceeded):
        begin_block(ROUTES, 0, ["web"])


def test_a_hook_that_is_loaded_again_is_called_once(seen: list[BlockStart]) -> None:
    for _ in range(2):
        registry.before_block(_hook)
    assert list(registry.BLOCK_HOOKS.values()).count(_hook) == 1


def _hook(start: BlockStart) -> None: ...
