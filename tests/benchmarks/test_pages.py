"""benchmarks.pages: which pages it fetches, and that it times no other."""

from io import BytesIO
from urllib.response import addinfourl

import pytest
from django.urls import resolve

from benchmarks import pages
from pgperf.admin.runs import RunAdmin
from pgperf.reports.several_runs import MOST

BASE = "http://site.example"


class Opener:
    """In place of the site: it answers each request from `leads_to`, or from where it was sent."""

    def __init__(self, leads_to: str = "") -> None:
        self._leads_to = leads_to

    def open(self, url: str, data: bytes | None = None, timeout: float = 0) -> addinfourl:
        return addinfourl(BytesIO(b"the page"), {}, self._leads_to or url)


def client(leads_to: str = "") -> pages.LoggedInClient:
    found = object.__new__(pages.LoggedInClient)
    found._base, found._opener = BASE, Opener(leads_to)
    return found


def test_the_list_has_as_many_runs_on_a_page_as_the_script_assumes() -> None:
    assert RunAdmin.list_per_page == pages.PER_PAGE


def test_one_comparison_is_of_as_many_runs_as_a_page_takes() -> None:
    path = pages.addresses(range(1, 1001), 7)["comparison of 8 runs"]
    address, _question, asked = path.partition("?")
    assert resolve(address).url_name == "pgperf_run_comparison"
    assert asked == "runs=" + ",".join(map(str, range(993, 1001)))
    assert pages.MOST_COMPARED == MOST


def test_each_page_has_an_address_of_the_site() -> None:
    names = {resolve(path.partition("?")[0]).url_name for path in pages.addresses(range(1, 1001), 7).values()}
    assert {"app_list", "pgperf_run_changelist", "pgperf_run_change", "pgperf_benchmark_runs"} < names


def test_a_page_that_leads_elsewhere_is_not_timed() -> None:
    assert client().get("/admin/pgperf/run/?p=20") == "the page"
    with pytest.raises(SystemExit, match=r"/admin/pgperf/run/\?p=21 leads to .*\?e=1"):
        client(f"{BASE}/admin/pgperf/run/?e=1").milliseconds("/admin/pgperf/run/?p=21", 5)


def test_djangos_own_page_has_no_bar(capsys: pytest.CaptureFixture[str]) -> None:
    slow, quick = [900.0] * 5, [10.0] * 5
    assert pages._report({pages.FLOOR: slow, "dashboard": quick}, 1_000, pages.BAR_MS) == 0
    assert pages._report({pages.FLOOR: quick, "dashboard": slow}, 1_000, pages.BAR_MS) == 1
    assert pages.FLOOR in capsys.readouterr().out
