"""The host that a page is requested from: one that the site accepts and does not redirect from."""

from io import BytesIO
from typing import Any

import pytest
from django.core.exceptions import DisallowedHost
from django.core.handlers.wsgi import WSGIRequest
from django.http import HttpResponse
from django.middleware.common import CommonMiddleware

from pgperf.clients import page_request, site_django
from pgperf.core import protocol


def request() -> WSGIRequest:
    return WSGIRequest({**page_request.environ(protocol.Page("/books/")), "wsgi.input": BytesIO()})


def test_a_site_that_leaves_its_hosts_to_debug_is_asked_at_localhost(settings: Any) -> None:
    """A client switches DEBUG off, and with it what Django allows for it."""
    settings.DEBUG, settings.ALLOWED_HOSTS = True, []
    site_django._switch_debug_off()
    assert not settings.DEBUG
    assert request().get_host() == "localhost"


def test_a_site_without_hosts_and_without_debug_refuses_as_it_does(settings: Any) -> None:
    settings.DEBUG, settings.ALLOWED_HOSTS = False, []
    site_django._switch_debug_off()
    with pytest.raises(DisallowedHost):
        request().get_host()


@pytest.mark.parametrize(
    ("hosts", "name"),
    [
        ([".example.com"], "www.example.com"),
        (["www.example.com"], "www.example.com"),
        (["example.com", "www.example.com"], "www.example.com"),
        (["*"], "www.localhost"),
    ],
)
def test_a_site_that_redirects_to_www_is_asked_there(settings: Any, hosts: list[str], name: str) -> None:
    settings.ALLOWED_HOSTS, settings.PREPEND_WWW = hosts, True
    asked = request()
    assert asked.get_host() == name
    assert CommonMiddleware(lambda _: HttpResponse()).process_request(asked) is None


def test_a_secure_host_gets_its_www_too(settings: Any) -> None:
    settings.ALLOWED_HOSTS, settings.PREPEND_WWW = ["*"], True
    settings.SECURE_SSL_REDIRECT, settings.SECURE_SSL_HOST = True, "secure.example.com"
    assert request().get_host() == "www.secure.example.com"
