"""benchmarks.page_clocks: both clocks of a slice, and the page that costs nothing."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from benchmarks import empty_page, page_clocks
from benchmarks.page_clocks import AccessLog, Agreement, Page


class Group:
    """A client whose requests take `client_us`; the server's log has `logged_us` of it."""

    def __init__(self, log: Path, client_us: float, logged_us: float, errors: dict[str, int]) -> None:
        self.log, self.client_us, self.logged_us, self.errors = log, client_us, logged_us, errors

    def run(self, request: Any) -> Any:
        lead_in, count = request.lead_in_ops, request.count
        with self.log.open("a") as log:
            log.write("999999\n" * lead_in + f"{self.logged_us}\n" * count)
        reply = SimpleNamespace(errors=self.errors)
        return SimpleNamespace(replies=[reply], durations=[np.full(count, self.client_us * 1000)])


def page(folder: Path, name: str, client_us: float, logged_us: float, errors: Any = None) -> Page:
    log = folder / name
    return Page(AccessLog(log, 1.0), Group(log, client_us, logged_us, errors or {}))  # type: ignore[arg-type]


def measured(folder: Path, real: tuple[float, float], empty: tuple[float, float]) -> Agreement:
    pages = page(folder, "real", *real), page(folder, "empty", *empty)
    for _ in range(7):
        for each in pages:
            each.slice(10)
    return page_clocks._of_log("gunicorn", *pages)


def test_clocks_agree_where_the_rest_is_the_same_for_both_pages(tmp_path: Path) -> None:
    found = measured(tmp_path, (7_500, 7_000), (600, 100))
    assert found.ratio == pytest.approx(1)
    assert (found.measured_us, found.expected_us) == pytest.approx((7_500, 7_500))


def test_time_that_no_clock_explains_shows(tmp_path: Path) -> None:
    assert measured(tmp_path, (8_500, 7_000), (600, 100)).ratio == pytest.approx(8_500 / 7_500)


def test_the_lead_in_is_in_no_clock(tmp_path: Path) -> None:
    real = page(tmp_path, "real", 7_500, 7_000)
    real.slice(3)
    real.slice(4)
    assert real.logged_us == [7_000, 7_000]
    assert len(real.log.lines()) == 2 * page_clocks._LEAD_IN_OPS + 7


def test_a_failed_request_ends_the_script(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="status 502"):
        page(tmp_path, "real", 1, 1, {"status 502": 1}).slice(2)


def test_lines_that_do_not_come_end_the_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_clocks, "_LOG_TIMEOUT_S", 0.0)
    (tmp_path / "log").write_text("1\n2\n")
    with pytest.raises(SystemExit, match="2 of 3 lines"):
        AccessLog(tmp_path / "log", 1.0).last_us(3, 1)


def test_a_log_in_seconds_becomes_microseconds(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("0.001\n0.012\n")
    assert AccessLog(tmp_path / "log", 1e6).last_us(2, 1) == pytest.approx([12_000])


def test_the_report_says_which_process_takes_longer(capsys: pytest.CaptureFixture[str]) -> None:
    view = {"client_user": 14_000.0, "client_sys": 1_000.0, "server": 2_300.0}
    page_clocks._show_cpu({"web": 17_800.0, "server": None}, view)
    said = capsys.readouterr().out
    assert "the view in process 15,000 µs, in the web server 17,800 µs" in said
    assert "PostgreSQL for them 2,300 and unknown µs" in said


@pytest.mark.parametrize("lacking", ["client_user", "client_sys"])
def test_the_report_says_what_is_unknown_of_the_process(
    lacking: str, capsys: pytest.CaptureFixture[str]
) -> None:
    view = {"client_user": 14_000.0, "client_sys": 1_000.0, "server": 2_300.0, lacking: None}
    page_clocks._show_cpu({"web": 17_800.0, "server": 2_300.0}, view)
    assert "the view in process unknown µs, in the web server 17,800 µs" in capsys.readouterr().out


def test_the_empty_page_has_the_announced_length() -> None:
    answered: list[Any] = []
    body = b"".join(empty_page.application({}, lambda status, headers: answered.append((status, headers))))
    ((status, headers),) = answered
    assert status == "200 OK"
    assert dict(headers)["Content-Length"] == str(len(body))
