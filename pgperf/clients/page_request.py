"""One page of the site, requested through Django's own WSGI handler as a web server would.

Every answer must have the first one's status, and about its length.
"""

import sys
from http import HTTPStatus
from importlib import import_module
from io import BytesIO
from typing import Any
from urllib.parse import unquote_to_bytes, urlsplit

from django.conf import settings
from django.core.handlers.wsgi import WSGIHandler
from django.core.signals import got_request_exception
from django.http.request import split_domain_port, validate_host

from pgperf.clients import page_guards
from pgperf.core import protocol
from pgperf.core.exceptions import InvalidDefinition

#: An answer is another page if its length is less or more than the first one's by this factor.
_FACTOR = 2


class PageRequest:
    """An operation that requests the page once, as from a web server at `url`, if there is one. Django
    must be set up.
    """

    def __init__(self, page: protocol.Page, url: str = "") -> None:
        self._page = page
        self._environ = environ(page, url)
        self._handler = WSGIHandler()
        self._error: BaseException | None = None
        self._status = 0
        self._first = self._least = self._most = 0  # lengths in bytes
        got_request_exception.connect(self._keep_error, weak=False, dispatch_uid="pgperf.page")

    def __call__(self) -> int:
        status, length = self._answer()
        if status != self._status or not self._least <= length <= self._most:
            self._compare(status, length)
        return 0

    def found(self) -> str:
        """The answers so far: status and length."""
        same = self._least == self._most
        lengths = f"{self._most:,}" if same else f"{self._least:,} to {self._most:,}"
        return f"{self._status}, {lengths} bytes"

    def check_session(self) -> None:
        """Raises InvalidDefinition if the measured database does not have the user's session."""
        key = self._page.cookie.partition("=")[2]
        store = import_module(settings.SESSION_ENGINE).SessionStore
        if key and not store().exists(key):
            raise InvalidDefinition(
                "page_user: the site's sessions are not in this database; choose the site's own, or request the page"
                " as a visitor"
            )

    def _answer(self) -> tuple[int, int]:
        self._error = None
        response: Any = self._handler({**self._environ, "wsgi.input": BytesIO()}, _start_response)
        try:
            length = sum(map(len, response))
        finally:
            response.close()
        if page_guards.refused or page_guards.mailed or self._error:
            self._raise_error(response.status_code)
        return response.status_code, length

    def _raise_error(self, status: int) -> None:
        """Raises what the view raised, or what it was refused, if it has caught that. An answer that
        is no page explains why the site's log sends mail.
        """
        if page_guards.refused:
            raise InvalidDefinition(page_guards.refused[0])
        if self._error:
            raise self._error
        _check_status(status)
        raise InvalidDefinition(page_guards.mailed[0])

    def _compare(self, status: int, length: int) -> None:
        """Compare an answer with the first one, which must be a page. Raises InvalidDefinition."""
        if not self._status:
            _check_status(status)
            self._status, self._first, self._least = status, length, length
        if status != self._status:
            raise InvalidDefinition(f"page: its status was {self._status}, and then {_named(status)}")
        if not self._first / _FACTOR <= length <= self._first * _FACTOR:
            raise InvalidDefinition(f"page: its length was {self._first:,} bytes, and then {length:,}")
        self._least, self._most = min(self._least, length), max(self._most, length)

    def _keep_error(self, **_: Any) -> None:
        self._error = sys.exc_info()[1]


def environ(page: protocol.Page, url: str = "") -> dict[str, Any]:
    """The WSGI environment of a request, without its body."""
    path, _, query = page.path.partition("?")
    scheme, host = _origin(url)
    name, port = split_domain_port(host)
    return {
        "REQUEST_METHOD": page.method,
        "SCRIPT_NAME": settings.FORCE_SCRIPT_NAME or "",
        "PATH_INFO": _unquoted(path),
        "QUERY_STRING": query,
        "SERVER_NAME": name,
        "SERVER_PORT": port or ("443" if scheme == "https" else "80"),
        "SERVER_PROTOCOL": "HTTP/1.1",
        "REMOTE_ADDR": "127.0.0.1",
        "HTTP_HOST": host,
        **{f"HTTP_{name.upper().replace('-', '_')}": value for name, value in protocol.PAGE_HEADERS.items()},
        **({"HTTP_COOKIE": page.cookie} if page.cookie else {}),
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": scheme,
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": False,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
    }


def _origin(url: str) -> tuple[str, str]:
    """The scheme and the host of the URL, or those that the site expects: it redirects from others
    where it says so.
    """
    asked = urlsplit(url)
    accepted = _is_accepted(asked.netloc) and _is_accepted(_with_www(asked.netloc))
    host = asked.netloc if accepted else _expected_host()
    is_secure = settings.SECURE_SSL_REDIRECT or (accepted and asked.scheme == "https")
    return "https" if is_secure else "http", _with_www(host)


def _with_www(host: str) -> str:
    """The host that the site redirects to from this one."""
    return f"www.{host}" if settings.PREPEND_WWW and not host.startswith("www.") else host


def _is_accepted(host: str) -> bool:
    """A proxy may give the site another host than that of its own URL."""
    name, _ = split_domain_port(host)
    return bool(name) and validate_host(name, settings.ALLOWED_HOSTS)


def _expected_host() -> str:
    named = [host.removeprefix(".") for host in settings.ALLOWED_HOSTS if host != "*"]
    answering = [host for host in named if _is_accepted(_with_www(host))]
    return settings.SECURE_SSL_HOST or next(iter(answering or named), "localhost")


def _unquoted(path: str) -> str:
    """The path as WSGI has it: without percent signs, its bytes as Latin-1."""
    return unquote_to_bytes(path).decode("latin-1")


def _start_response(*_: Any) -> Any:
    """A server would send status and headers here."""


def _check_status(status: int) -> None:
    if not 200 <= status < 300:
        raise InvalidDefinition(f"page: its status is {_named(status)}{_REMEDIES.get(status, '')}")


def _named(status: int) -> str:
    return f"{status} ({HTTPStatus(status).phrase})" if status in list(HTTPStatus) else str(status)


_LOGIN = "; enter the path that it leads to, or choose a user who may see the page"
_REMEDIES = {
    **dict.fromkeys((301, 302, 303, 307, 308), _LOGIN),
    **dict.fromkeys((401, 403), "; choose a user who may see the page"),
    400: "; check ALLOWED_HOSTS",
}
