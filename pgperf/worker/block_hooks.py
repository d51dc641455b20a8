"""Calls the hooks that a site registers with pgperf.registry.before_block."""

from collections.abc import Mapping, Sequence

from celery.exceptions import SoftTimeLimitExceeded

from pgperf import registry
from pgperf.core.delayed_routes import apart
from pgperf.core.exceptions import HookFailed
from pgperf.core.records import Route
from pgperf.registry import BlockStart


def begin_block(routes: Mapping[str, Route], block: int, names: Sequence[str]) -> None:
    """Call the hooks if the block, which measures the routes `names`, requests pages over HTTP.

    Raises HookFailed, which names the hook.
    """
    urls = {apart(name)[0]: routes[name].url for name in names if routes[name].url}
    if not urls:
        return
    for origin, hook in registry.BLOCK_HOOKS.items():
        try:
            hook(BlockStart(block, urls))
        except SoftTimeLimitExceeded:
            raise
        except Exception as error:
            raise HookFailed(f"{'.'.join(origin)}, before block {block + 1}: {error}") from error
