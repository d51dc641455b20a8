"""An HTTP client of the site's admin: it logs in, starts runs, cancels them and polls their
progress.
"""

import http.client
import json
import urllib.parse
from dataclasses import dataclass, field
from typing import Any

_TIMEOUT_S = 60.0


@dataclass
class Answer:
    status: int
    location: str
    body: str

    @property
    def run_id(self) -> int:
        """The run whose page the answer redirects to; 0 if it redirects elsewhere."""
        words = self.location.strip("/").split("/")
        return next((int(word) for word in words if word.isdigit()), 0) if "run" in words else 0


@dataclass
class Browser:
    """Cookies of one session.

    Threads may share it after the login: each request opens its own connection.
    """

    host: str
    cookies: dict[str, str] = field(default_factory=dict)

    @classmethod
    def logged_in(cls, url: str, user: str, password: str) -> "Browser":
        browser = cls(urllib.parse.urlsplit(url).netloc)
        browser.get("/admin/login/")
        answer = browser.post("/admin/login/", username=user, password=password, next="/admin/")
        if answer.status != 302:
            raise RuntimeError(f"the login answered {answer.status}")
        return browser

    def get(self, path: str) -> Answer:
        return self._ask("GET", path)

    def post(self, path: str, **fields: str) -> Answer:
        return self._ask("POST", path, {"csrfmiddlewaretoken": self.cookies.get("csrftoken", ""), **fields})

    def start(self, benchmark: int, database: int, token: str) -> Answer:
        """Submit the form of the confirmation page."""
        fields = {"database": str(database), "length": "full", "token": token, "confirm_name": ""}
        return self.post(f"/admin/pgperf/benchmark/{benchmark}/run/", **fields)

    def cancel(self, run: int) -> Answer:
        return self.post(f"/admin/pgperf/run/{run}/cancel/")

    def progress(self, run: int) -> dict[str, Any]:
        """The JSON that the run page polls."""
        return dict(json.loads(self.get(f"/admin/pgperf/run/{run}/progress/").body))

    def _ask(self, method: str, path: str, fields: dict[str, str] | None = None) -> Answer:
        connection = http.client.HTTPConnection(self.host, timeout=_TIMEOUT_S)
        headers = {"Cookie": "; ".join(f"{name}={value}" for name, value in self.cookies.items())}
        if fields is not None:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        try:
            connection.request(
                method, path, urllib.parse.urlencode(fields or {}) if fields else None, headers
            )
            response = connection.getresponse()
            for header in response.headers.get_all("Set-Cookie") or []:
                name, _, value = header.partition(";")[0].partition("=")
                self.cookies[name] = value
            return Answer(response.status, response.headers.get("Location", ""), response.read().decode())
        finally:
            connection.close()
