"""A site whose calls are captured. A module says by SITE_SETTINGS which settings its clients have."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pgperf.core.records import Route
from pgperf.runner.capture.statements import CaptureSettings
from tests.runner.forked_clients import Nursery, of_site


@pytest.fixture(scope="module")
def started_site(
    request: pytest.FixtureRequest, book_routes: dict[str, Route], c_client: Path
) -> Iterator[CaptureSettings]:
    """Its clients set Django up themselves."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("DJANGO_SETTINGS_MODULE", request.module.SITE_SETTINGS)
        yield CaptureSettings(book_routes["tcp"], str(c_client.parent))


@pytest.fixture(scope="module")
def nursery(request: pytest.FixtureRequest, started_site: CaptureSettings) -> Iterator[Nursery]:
    with of_site(request.module.SITE_SETTINGS) as found:
        yield found


@pytest.fixture
def site(started_site: CaptureSettings, nursery: Nursery) -> Iterator[CaptureSettings]:
    """Its clients are forked where Django is set up."""
    with nursery.raising():
        yield started_site
