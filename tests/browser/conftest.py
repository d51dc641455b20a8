"""Chromium on the live site. A console error on a page fails its test."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, expect, sync_playwright
from pytest_django.live_server_helper import LiveServer

from pgperf.models import Database, Target

#: Pages ask for news every two seconds, on a machine that may be busy. Only a failure waits so long.
expect.set_options(timeout=30_000)
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


def new_context(browser: Browser, live_server: LiveServer) -> BrowserContext:
    """With windows 1280 px wide."""
    return browser.new_context(
        base_url=live_server.url, viewport={"width": 1280, "height": 900}, color_scheme="light"
    )


@pytest.fixture(scope="module")
def shared_context(browser: Browser, live_server: LiveServer) -> Iterator[BrowserContext]:
    """One that loads static files once for the tests of a module."""
    context = new_context(browser, live_server)
    yield context
    context.close()


@pytest.fixture
def page(shared_context: BrowserContext, live_server: LiveServer, transactional_db: None) -> Iterator[Page]:
    """A page in which a superuser is logged in, and that knows nothing of the pages before.

    A console error, such as a blocked script, fails the test.
    """
    client = Client()
    client.force_login(User.objects.create_superuser("boss", password="secret"))
    session = client.cookies[settings.SESSION_COOKIE_NAME]
    shared_context.clear_cookies()
    shared_context.add_cookies([{"name": session.key, "value": session.value, "url": live_server.url}])
    with without_errors(shared_context) as page:
        yield page
        if page.url.startswith(live_server.url):
            page.evaluate("localStorage.clear()")


@pytest.fixture
def own_page(browser: Browser, live_server: LiveServer, transactional_db: None) -> Iterator[Page]:
    """A page whose changes concern its whole context, such as another clock; logged in by the form."""
    User.objects.create_superuser("boss", password="secret")
    context = new_context(browser, live_server)
    with without_errors(context) as page:
        page.goto("/admin/")
        page.fill("#id_username", "boss")
        page.fill("#id_password", "secret")
        page.click("[type=submit]")
        yield page
    context.close()


@pytest.fixture
def database(stack: dict[str, str], transactional_db: None) -> Database:
    """The test database over its Unix socket."""
    name = str(connection.settings_dict["NAME"])
    database = Database.objects.create(
        name="demo", dbname=name, credential="alias:default", allow_fixtures=True
    )
    Target.objects.create(
        database=database, route="socket", host=stack["PGPERF_DB_SOCKET"], port=stack["PGPERF_DB_PORT"],
        sslmode=Target.SSLMode.DISABLE,
    )  # fmt: skip
    return database


def look(page: Page, width: int, scheme: str) -> str:
    """Makes the window as wide, in this colour scheme; returns both in words."""
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    page.set_viewport_size({"width": width, "height": 900})
    return f"{width} px, {scheme}"


@contextmanager
def without_errors(context: BrowserContext) -> Iterator[Page]:
    page = context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda message: errors.append(message.text) if _is_error(message) else None)
    yield page
    page.close()
    assert errors == []


def _is_error(message: ConsoleMessage) -> bool:
    """An error of the page itself: one of a script that a test evaluates has no address."""
    return message.type == "error" and bool(message.location["url"])
