"""The share of requests that found their connection open."""

from dataclasses import replace

import pytest

from pgperf.analysis.http_requests import http_requests
from pgperf.core.records import Variant

from .synthetic import block, piece, variant

HTTP = {"requests": 100, "errors": {}, "lengths": [10, 10]}
OPEN = replace(variant(layer="http"), rate=100.0, schedule="constant")


def kept(of: Variant, ops: int, new_connections: int, **counts: int) -> float | None:
    one = piece(100.0, 0, ops, new_connections=new_connections, **counts)
    found = http_requests([replace(block(of, 0, []), slices=(one,), http=HTTP)])
    assert found
    return found.kept


def test_of_a_closed_loop_it_is_of_those_that_ended() -> None:
    assert kept(variant(layer="http"), 50, 5) == pytest.approx(0.9)


def test_of_an_open_loop_it_is_of_those_that_were_due_and_ran() -> None:
    """90 of 100 ran, and all connected; 50 requests ended in the window."""
    assert kept(OPEN, 50, 90, due=100, skipped=4, backlog=6) == 0.0
    assert kept(OPEN, 50, 0, due=100, skipped=4, backlog=96) is None
