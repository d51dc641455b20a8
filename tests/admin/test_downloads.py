"""Raw slices are streamed under WSGI and ASGI, to users with the export permission."""

import csv
import io
from collections.abc import AsyncIterator, Callable, Iterator

import pytest
from asgiref.sync import async_to_sync
from django.core.handlers.asgi import ASGIRequest
from django.http import StreamingHttpResponse
from django.test import AsyncRequestFactory, Client
from django.urls import reverse

from pgperf.admin import downloads
from pgperf.models import Run
from tests import factories


def address(run: Run) -> str:
    return reverse("admin:pgperf_run_download", args=[run.pk, "slices.csv"])


@pytest.fixture
def measured(run: Run) -> Run:
    return factories.make_blocks(run)


def test_the_slices_are_streamed(admin_page: Client, measured: Run) -> None:
    response = admin_page.get(address(measured))
    assert response.streaming
    assert "Content-Length" not in response
    assert response["Content-Disposition"] == (
        f'attachment; filename="pgperf-orm-overhead-{measured.pk}-slices.csv"'
    )
    rows = list(csv.DictReader(io.StringIO(response.getvalue().decode())))
    assert len(rows) == 2 * 5 * 3


@pytest.mark.parametrize("role", ["viewer", "runner", "canceller", "definer", "staff", "start_only"])
def test_other_roles_get_403(role: str, measured: Run, client_of: Callable[[str], Client]) -> None:
    assert client_of(role).get(address(measured)).status_code == 403


def test_an_exporter_downloads_the_slices(measured: Run, client_of: Callable[[str], Client]) -> None:
    assert client_of("exporter").get(address(measured)).getvalue().startswith(b"run_id,")


def test_an_anonymous_user_gets_the_login_page(measured: Run) -> None:
    assert "/login/" in Client().get(address(measured))["Location"]


@pytest.mark.django_db(transaction=True)
def test_asgi_streams_line_by_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second line is produced only after the first was consumed."""
    made: list[int] = []

    def lines(_run: Run) -> Iterator[str]:
        for number in range(3):
            made.append(number)
            yield f"{number}\r\n"

    monkeypatch.setattr(downloads, "slices_csv", lines)
    request = AsyncRequestFactory().get("/")
    assert isinstance(request, ASGIRequest)
    response = downloads.download(request, downloads.RAW, factories.make_run())
    assert isinstance(response, StreamingHttpResponse)
    assert _taken(response.streaming_content, made) == [(b"0\r\n", 1), (b"1\r\n", 2), (b"2\r\n", 3)]  # type: ignore[arg-type]


def _taken(pieces: AsyncIterator[bytes], made: list[int]) -> list[tuple[bytes, int]]:
    """Each line, and the number of lines produced when it arrived."""

    @async_to_sync
    async def collect() -> list[tuple[bytes, int]]:
        return [(piece, len(made)) async for piece in pieces]

    return collect()
