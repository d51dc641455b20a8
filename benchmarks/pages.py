"""Response times of the dashboard, list, run, history and comparison pages with 1,000 stored runs;
one comparison is of as many runs as a page takes.

    python -m benchmarks.pages [--runs 1000] [--quick]

The script copies one real run of `orm-overhead` with 62 variants, then fetches each page over HTTP
twenty times as a logged-in user. It prints the median and the second slowest time, also of a page of
Django's own, which tells how fast the machine is. The bar: the median is under 150 ms for every
page, also for the run page with its other topics, which a browser fetches when the answer is there.
`--quick`: 200 runs, five fetches, under 400 ms. Tests limit the number of queries of a page.
"""

import argparse
import http.cookiejar
import math
import re
import statistics
import time
import urllib.parse
import urllib.request
from collections.abc import Sequence

from benchmarks.example_site import ROOT
from benchmarks.many_runs import connect, copy, measured
from benchmarks.options import ScriptParser, run_script
from example.stack.stack import ALL, Stack

#: 5 layers over 3 routes with 4 numbers of clients, and two controls.
SHORT = ("--quick", "--blocks=6", "--rounds=1", "--clients=1,2,3,4")
BAR_MS, QUICK_BAR_MS = 150.0, 400.0
#: Of Django's admin: it has no bar.
FLOOR = "Django's own, for comparison"
#: Of the list of runs.
PER_PAGE = 50
#: Runs that one page compares at most.
MOST_COMPARED = 8
_TOKEN = re.compile(r'name="csrfmiddlewaretoken" value="([^"]+)"')


def main() -> int:
    options = _options()
    runs, times = (200, 5) if options.quick else (options.runs, 20)
    with Stack(ROOT / ".stack" / "pages", parts=ALL, keep=False) as stack:
        run = measured(stack.env, *SHORT)
        with connect(stack.env) as connection:
            copies = copy(connection, run, runs - 1)
            benchmark = connection.execute(
                "SELECT benchmark_id FROM pgperf_run WHERE id = %s", [run]
            ).fetchone()
            assert benchmark
        client = LoggedInClient(stack.env)
        pages = addresses([run, *copies], benchmark[0])
        found = {name: client.milliseconds(path, times) for name, path in pages.items()}
    return _report(found, runs, QUICK_BAR_MS if options.quick else BAR_MS)


def addresses(runs: Sequence[int], benchmark: int) -> dict[str, str]:
    """The pages that are fetched, by name. `runs`: all that are stored, the oldest first."""
    first, last = runs[0], runs[-1]
    several = ",".join(map(str, runs[-MOST_COMPARED:]))
    return {
        FLOOR: "/admin/password_change/",
        "dashboard": "/admin/pgperf/",
        "list": "/admin/pgperf/run/",
        "list, its last page": f"/admin/pgperf/run/?p={math.ceil(len(runs) / PER_PAGE)}",
        "list, filtered and searched": "/admin/pgperf/run/?status__exact=done&q=orm",
        "run": f"/admin/pgperf/run/{last}/change/",
        "run, its other topics": f"/admin/pgperf/run/{last}/change/?topics=others",
        "history": f"/admin/pgperf/benchmark/{benchmark}/runs/",
        "comparison": f"/admin/pgperf/run/{last}/compare/?with={first}",
        "comparison, by default": f"/admin/pgperf/run/{last}/compare/",
        f"comparison of {MOST_COMPARED} runs": f"/admin/pgperf/run/compare/?runs={several}",
    }


def _options() -> argparse.Namespace:
    parser = ScriptParser(__doc__)
    parser.add_argument("--runs", type=int, default=1_000)
    return parser.options()


class LoggedInClient:
    """An HTTP client, logged in as the admin of the example site."""

    def __init__(self, stack_env: dict[str, str]) -> None:
        self._base = stack_env["PGPERF_URL"].rstrip("/")
        cookies = urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), cookies)
        login = "/admin/login/?next=/admin/"
        token = _TOKEN.search(self.get(login))
        assert token
        form = {
            "csrfmiddlewaretoken": token[1],
            "username": stack_env["PGPERF_ADMIN_USER"],
            "password": stack_env["PGPERF_ADMIN_PASSWORD"],
        }
        data = urllib.parse.urlencode(form).encode()
        with self._opener.open(self._base + login, data, timeout=30) as answer:
            if "/login/" in answer.url:
                raise SystemExit("verdict: cannot measure: the login was refused")

    def get(self, path: str) -> str:
        """The page. The script exits if the site sends the client elsewhere."""
        with self._opener.open(self._base + path, timeout=30) as answer:
            if answer.url != self._base + path:
                raise SystemExit(f"verdict: cannot measure: {path} leads to {answer.url}")
            return str(answer.read().decode())

    def milliseconds(self, path: str, times: int) -> list[float]:
        """The time of each fetch, ascending, after one fetch that fills the caches."""
        self.get(path)
        found = []
        for _ in range(times):
            began = time.monotonic()
            self.get(path)
            found.append((time.monotonic() - began) * 1000)
        return sorted(found)


def _report(found: dict[str, list[float]], runs: int, bar: float) -> int:
    print(f"{f'page, {runs:,} runs stored':<32} {'median, ms':>11} {'second slowest':>16}")
    for name, times in found.items():
        print(f"{name:<32} {statistics.median(times):>11.0f} {times[-2]:>16.0f}")
    held = all(statistics.median(times) < bar for name, times in found.items() if name != FLOOR)
    print("\nverdict: " + ("the bar holds" if held else "the bar does NOT hold"))
    return 0 if held else 1


if __name__ == "__main__":
    run_script(main)
