"""Chromium on the live site. A console error on a page fails its test."""

import os
import shutil
from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Browser, Page, sync_playwright
from pytest_django.live_server_helper import LiveServer

SWITCHES = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    # Playwright runs an event loop in this thread, in which Django refuses synchronous queries.
    before = os.environ.get("DJANGO_ALLOW_ASYNC_UNSAFE")
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=list(SWITCHES))
        yield chromium
        chromium.close()
    if before is None:
        del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


@pytest.fixture
def page(browser: Browser, live_server: LiveServer, transactional_db: None) -> Iterator[Page]:
    """A page 1280 px wide, logged in as a superuser.

    A console error, such as a blocked script, fails the test.
    """
    User.objects.create_superuser("boss", password="secret")
    context = browser.new_context(
        base_url=live_server.url, viewport={"width": 1280, "height": 900}, color_scheme="light"
    )
    page = context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda message: errors.append(message.text) if _is_error(message) else None)
    page.goto("/admin/")
    page.fill("#id_username", "boss")
    page.fill("#id_password", "secret")
    page.click("[type=submit]")
    yield page
    context.close()
    assert errors == []


def _is_error(message: object) -> bool:
    return getattr(message, "type", "") == "error"
