"""Which URLs of web servers a target may have."""

from typing import Any

import pytest
from django.core.exceptions import ValidationError
from hypothesis import given
from hypothesis import strategies as st

from pgperf.db.web_urls import WebUrl, is_allowed
from pgperf.models import Database, Target


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("https://site.example", "https://site.example"),
        ("https://site.example:443", "https://site.example"),
        ("http://Site.Example:80", "http://site.example"),
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000"),
        ("http://[::1]:8000", "http://[::1]:8000"),
        ("https://Site.Example:443/Shop/v1.2", "https://site.example/Shop/v1.2"),
        ("http://[::1]:8000/shop", "http://[::1]:8000/shop"),
    ],
)
def test_a_url_is_a_scheme_a_name_a_port_and_perhaps_the_site_s_prefix(text: str, same: str) -> None:
    assert str(WebUrl.parse(text)) == same
    assert WebUrl.parse(text) == WebUrl.parse(same)


HOSTILE = (
    "", "site.example", "//site.example", "ftp://site.example", "file:///etc/passwd", "gopher://site.example",
    "http://user@site.example", "http://user:secret@site.example", "http://site.example/",
    "http://site.example/shop/", "http://site.example//shop", "http://site.example/..", "http://site.example/a/../b",
    "http://site.example/.", "http://site.example/%2e%2e", "http://site.example/a b", "http://site.example/shop?query",
    "http://site.example/a\\b", "http://site.example/a;b", "http://site.example/ü",
    "http://site.example?query", "http://site.example#fragment", "http://site.example:0", "http://site.example:65536",
    "http://site.example:８０", "http://2130706433", "http://0x7f000001", "http://127.1", "http://::1", "http://[::1",
    "http://[site.example]", "http://[fe80::1%25eth0]", "http://a b", "http://site.example\n", "http://a\r\nHost: b",
    "http://a\\b", "http://a,b", "http://%2Ftmp", "http://ＳＩＴＥ.example", "http://-a", "http://a..b",
    "http://" + "a" * 300,
)  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a URL of the form"):
        WebUrl.parse(text)


@given(st.text())
def test_no_text_breaks_the_parser(text: str) -> None:
    try:
        url = WebUrl.parse(text)
    except ValueError:
        return
    assert WebUrl.parse(str(url)) == url


@pytest.mark.parametrize(
    ("entry", "allowed"),
    [
        ("https://site.example", True),
        ("https://site.example:443", True),
        ("http://site.example", False),
        ("https://site.example:8443", False),
        ("https://www.site.example", False),
        ("https://site.example/shop", False),
        ("site.example", False),
        ("*", False),
    ],
)
def test_settings_allow_a_scheme_a_name_and_a_port(settings: Any, entry: str, allowed: bool) -> None:
    settings.PGPERF = {**settings.PGPERF, "WEB_URLS": [entry]}
    assert is_allowed(WebUrl.parse("https://site.example")) == allowed


def test_settings_allow_a_prefix_only_where_they_name_it(settings: Any) -> None:
    settings.PGPERF = {**settings.PGPERF, "WEB_URLS": ["https://site.example", "http://site.example/shop"]}
    assert is_allowed(WebUrl.parse("http://site.example/shop"))
    for other in ("https://site.example/shop", "http://site.example/Shop", "http://site.example/shop/a"):
        assert not is_allowed(WebUrl.parse(other))


def test_settings_allow_none_without_an_entry() -> None:
    assert not is_allowed(WebUrl.parse("http://127.0.0.1"))


def target(**fields: Any) -> Target:
    return Target(**{"database": Database(name="a"), "route": "web", **fields})


def errors(**fields: Any) -> dict[str, list[str]]:
    with pytest.raises(ValidationError) as caught:
        target(**fields).full_clean(exclude=["database"])
    return caught.value.message_dict


@pytest.fixture
def allowed(settings: Any) -> None:
    settings.PGPERF = {**settings.PGPERF, "WEB_URLS": ["https://site.example", "http://site.example"]}


def test_a_target_is_an_address_or_a_url(allowed: None) -> None:
    target(url="http://site.example").full_clean(exclude=["database"])
    target(url="https://site.example", sslrootcert="ca.crt", builds_on="plain").full_clean(
        exclude=["database"]
    )
    target(host="127.0.0.1").full_clean(exclude=["database"])
    assert "host" in errors()
    assert "url" in errors(url="http://site.example", host="127.0.0.1")


@pytest.mark.parametrize(
    ("field", "value"), [("pooler", "session"), ("user", "app"), ("credential", "alias:app")]
)
def test_a_url_has_nothing_of_a_databases_address(allowed: None, field: str, value: str) -> None:
    assert field in errors(url="http://site.example", **{field: value})


def test_https_needs_certificates_and_http_has_none(allowed: None) -> None:
    assert "sslrootcert" in errors(url="https://site.example")
    assert "sslrootcert" in errors(url="http://site.example", sslrootcert="ca.crt")


def test_only_a_url_builds_on_another_target() -> None:
    assert "builds_on" in errors(host="127.0.0.1", builds_on="other")


def test_a_url_that_settings_do_not_allow_names_the_setting() -> None:
    (message,) = errors(url="http://site.example")["url"]
    assert "PGPERF['WEB_URLS']" in message
    assert "http://site.example" in message
