"""The site's own middleware: a strict Content-Security-Policy, which pgperf's pages obey without
exceptions, and a commit for sites without autocommit.
"""

from collections.abc import Callable

from django.db import transaction
from django.http import HttpRequest, HttpResponse

POLICY = (
    "default-src 'self'; img-src 'self' data:; object-src 'none'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)


def content_security_policy(
    get_response: Callable[[HttpRequest], HttpResponse],
) -> Callable[[HttpRequest], HttpResponse]:
    def middleware(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        response.headers.setdefault("Content-Security-Policy", POLICY)
        return response

    return middleware


def commit(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """End the transaction of a request, as Django's TransactionMiddleware of 2011 did.

    For AUTOCOMMIT = False: the first statement begins a transaction that nothing else would end.
    """

    def middleware(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        transaction.commit()
        return response

    return middleware
