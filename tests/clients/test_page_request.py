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


@pytest.mark.parametrize(
    ("url", "host", "scheme"),
    [
        ("https://shop.example.com", "shop.example.com", "https"),
        ("http://shop.example.com:8000/below", "shop.example.com:8000", "http"),
        ("http://127.0.0.1:8000", "www.example.com", "http"),  # a proxy's, which names the site another
        ("https://127.0.0.1:8443", "www.example.com", "http"),
        ("", "www.example.com", "http"),
    ],
)
def test_a_site_that_chooses_its_page_by_host_is_asked_as_over_http(
    settings: Any, url: str, host: str, scheme: str
) -> None:
    settings.ALLOWED_HOSTS = ["www.example.com", "shop.example.com"]
    found = WSGIRequest({**page_request.environ(protocol.Page("/"), url), "wsgi.input": BytesIO()})
    assert (found.get_host(), found.scheme) == (host, scheme)
    assert found.get_port() == (host.partition(":")[2] or {"http": "80", "https": "443"}[scheme])


@pytest.mark.parametrize(
    ("hosts", "url", "host"),
    [
        (["example.com", "www.example.com", "127.0.0.1"], "http://127.0.0.1:8000", "www.example.com"),
        (["127.0.0.1", ".example.com"], "http://127.0.0.1:8000", "www.example.com"),
        (["127.0.0.1", ".example.com"], "http://example.com:8000", "www.example.com:8000"),
        (["127.0.0.1", ".example.com"], "http://www.example.com:8000", "www.example.com:8000"),
    ],
)
def test_a_url_whose_host_has_no_www_that_the_site_answers_at_is_not_sent(
    settings: Any, hosts: list[str], url: str, host: str
) -> None:
    settings.ALLOWED_HOSTS, settings.PREPEND_WWW = hosts, True
    asked = WSGIRequest({**page_request.environ(protocol.Page("/"), url), "wsgi.input": BytesIO()})
    assert asked.get_host() == host
    assert CommonMiddleware(lambda _: HttpResponse()).process_request(asked) is None


def test_a_url_that_names_no_host_of_http_is_not_sent(settings: Any) -> None:
    settings.ALLOWED_HOSTS = ["*"]
    assert page_request.environ(protocol.Page("/"), "http://b\u00fccher.example")["HTTP_HOST"] == "localhost"


def test_a_secure_host_gets_its_www_too(settings: Any) -> None:
    settings.ALLOWED_HOSTS, settings.PREPEND_WWW = ["*"], True
    settings.SECURE_SSL_REDIRECT, settings.SECURE_SSL_HOST = True, "secure.example.com"
    assert request().get_host() == "www.secure.example.com"
