"""A middleware with a strict Content-Security-Policy."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse


def strict(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    def middleware(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        response.headers["Content-Security-Policy"] = "default-src 'self'"
        return response

    return middleware
