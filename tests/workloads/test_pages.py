"""Which paths and users of the site a page may have."""

import pytest
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.test import override_settings

from pgperf.models import Workload
from pgperf.workloads import pages


@pytest.mark.parametrize(
    "path", ["/", "/books/", "/books/?q=the&page=2", "/books/?q=%20a%2Fb", "/books/?q=../a"]
)
def test_the_site_s_own_pages_may_be_measured(path: str) -> None:
    assert pages.path_problem(path) == ""


@pytest.mark.parametrize(
    ("path", "remedy"),
    [
        ("", "begins with one /"),
        ("books/", "begins with one /"),
        ("//elsewhere.example/", "begins with one /"),
        ("https://elsewhere.example/", "begins with one /"),
        ("/books/#top", "after #"),
        ("/books/?q=a b", "percent-encoded"),
        ("/books/?q=\r\nHost:x", "percent-encoded"),
        ("/bücher/", "percent-encoded"),
        ("/books/../admin/", "parts . and .."),
        ("/books/%2e%2e/admin/", "parts . and .."),
        ("/books%2f..%2Fadmin/", "parts . and .."),
        ("/./admin/", "parts . and .."),
        ("/books", "Enter /books/ with a slash"),
        ("/nowhere/", "no such page"),
        ("/%62ooks", "slash at its end"),
        ("/admin/", "Pages of the admin"),
        ("/admin/books/book/", "Pages of the admin"),
        ("/%61dmin/", "Pages of the admin"),
        ("/admin/nowhere/", "Pages of the admin"),
        ("/admin/login/?next=/", "Pages of the admin"),
    ],
)
def test_a_path_that_is_no_page_is_refused_with_the_remedy(path: str, remedy: str) -> None:
    assert remedy in pages.path_problem(path)


@pytest.mark.parametrize("prefix", ["/shop", "/shop/"])
def test_a_path_is_that_below_the_prefix_of_the_site(prefix: str) -> None:
    with override_settings(FORCE_SCRIPT_NAME=prefix):
        assert pages.path_problem("/books/") == ""
        assert "Leave out /shop, below which" in pages.path_problem("/shop/books/?page=2")
        assert "no such page" in pages.path_problem("/shopping/")


@override_settings(ROOT_URLCONF="tests.nowhere")
def test_urls_that_cannot_be_loaded_are_named() -> None:
    assert "cannot be loaded (ModuleNotFoundError)" in pages.path_problem("/books/")


@pytest.mark.django_db
@override_settings(PGPERF={"PAGE_USERS": ["reader", "gone", "staff", "root", "asleep"]})
def test_only_active_users_of_the_setting_without_staff_may_see_a_page() -> None:
    reader = User.objects.create_user("reader")
    User.objects.create_user("staff", is_staff=True)
    User.objects.create_user("root", is_superuser=True)
    User.objects.create_user("asleep", is_active=False)
    User.objects.create_user("other")
    assert pages.account("reader") == reader
    for name, reason in (
        ("gone", "no user of that name"),
        ("staff", "member of the staff"),
        ("root", "member of the staff"),
        ("asleep", "not active"),
        ("other", "does not name this user; it names: reader"),
    ):
        with pytest.raises(ValidationError, match=reason) as found:
            pages.account(name)
        assert list(found.value.message_dict) == ["page_user"]


def workload(**fields: object) -> Workload:
    return Workload(name="page", title="Page", **fields)


def test_a_page_needs_no_other_field() -> None:
    workload(path="/books/").clean()


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"path": "/books/", "sql": "SELECT 1"}, "path"),
        ({"path": "/books/", "orm": "books.page"}, "path"),
        ({"path": "/books/", "bulk": "batch"}, "path"),
        ({"path": "/books/", "args": [1]}, "path"),
        ({"path": "/admin/"}, "path"),
        ({"path": "/books/", "page_user": "reader"}, "page_user"),
        ({"sql": "SELECT 1", "page_user": "reader"}, "page_user"),
        ({"sql": "SELECT 1", "one_capture": True}, "one_capture"),
    ],
)
def test_a_contradictory_page_is_refused_by_field(fields: dict[str, object], field: str) -> None:
    with pytest.raises(ValidationError) as found:
        workload(**fields).clean()
    assert list(found.value.message_dict) == [field]
