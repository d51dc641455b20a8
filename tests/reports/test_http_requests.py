"""HTTP requests of a run: what its page says of them."""

import pytest

from pgperf.models import Run
from pgperf.reports import http_requests
from tests import site_steps

pytestmark = pytest.mark.django_db


@pytest.fixture
def run() -> Run:
    return site_steps.with_requests(site_steps.make_run())


def test_counts_and_lengths_are_whole_numbers(run: Run) -> None:
    first, second, *_others = http_requests.request_table(list(run.variants.order_by("position"))).rows
    assert [cell.text for cell in first[1:]] == [
        "5,000", "2", "status 502 (1); timed out (1)", "75.0", "6,000 to 6,144",
    ]  # fmt: skip
    assert [cell.text for cell in second[2:4]] == ["0", ""]
