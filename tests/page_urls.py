"""The example site's URLs, and pages that cannot be replayed below the view, or do more than read."""

import logging
import time
from contextlib import suppress
from itertools import count
from typing import Any

from celery import shared_task
from django.core.exceptions import SuspiciousOperation
from django.core.mail import send_mail
from django.db import connection, connections, transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import path

from example.books.models import Book
from example.urls import urlpatterns as site

_numbers = count(4711)
_visits: list[str] = []


@shared_task
def task() -> None: ...


def counting(request: HttpRequest) -> HttpResponse:
    return HttpResponse(str(Book.objects.filter(pages=next(_numbers)).count()))


def growing(request: HttpRequest) -> HttpResponse:
    for _ in range(next(_numbers) % 7 + 1):
        Book.objects.count()
    return HttpResponse("growing")


@transaction.atomic
def atomic(request: HttpRequest) -> HttpResponse:
    return HttpResponse(str(Book.objects.count()))


def silent(request: HttpRequest) -> HttpResponse:
    return HttpResponse("silent")


def writing(request: HttpRequest) -> HttpResponse:
    return HttpResponse(str(Book.objects.update(pages=4711)))


def writing_quietly(request: HttpRequest) -> HttpResponse:
    with suppress(Exception):
        Book.objects.update(pages=4711)
    return HttpResponse(str(Book.objects.count()))


def writing_first(request: HttpRequest) -> HttpResponse:
    """Quietly, and only in the first request of its process."""
    if not _visits:
        _visits.append(request.path)
        writing_quietly(request)
    return HttpResponse(str(Book.objects.count()))


def writing_by_function(request: HttpRequest) -> HttpResponse:
    """Its words do not tell that it writes."""
    with suppress(Exception), connection.cursor() as cursor:
        cursor.execute("SELECT nextval('books_book_id_seq')")
    return HttpResponse(str(Book.objects.count()))


def locking(request: HttpRequest) -> HttpResponse:
    with transaction.atomic():
        return HttpResponse(str(len(Book.objects.select_for_update().filter(pages=4711))))


def elsewhere(request: HttpRequest) -> HttpResponse:
    with connections["other"].cursor() as cursor:
        cursor.execute("SELECT 1")
    return HttpResponse("elsewhere")


def elsewhere_quietly(request: HttpRequest) -> HttpResponse:
    with suppress(Exception):
        elsewhere(request)
    return HttpResponse(str(Book.objects.count()))


def mail(request: HttpRequest) -> HttpResponse:
    send_mail("subject", "message", None, ["reader@example.com"], fail_silently=True)
    return HttpResponse(str(Book.objects.count()))


def queue(request: HttpRequest) -> HttpResponse:
    with suppress(Exception):
        task.delay()
    return HttpResponse(str(Book.objects.count()))


def broken(request: HttpRequest) -> HttpResponse:
    return HttpResponse(str(Book.objects.count() / 0))


def suspicious(request: HttpRequest) -> HttpResponse:
    raise SuspiciousOperation("as an unknown host is")


def logging_an_error(request: HttpRequest) -> HttpResponse:
    """The page is answered, and ADMINS get a mail."""
    logging.getLogger("django.shop").error("out of stock")
    return HttpResponse(str(Book.objects.count()))


def reading(request: HttpRequest) -> HttpResponse:
    with connection.cursor() as cursor:
        cursor.execute(request.GET["sql"])
        return HttpResponse(str(len(cursor.fetchall())))


def two_lengths(request: HttpRequest) -> HttpResponse:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    return HttpResponse("x" * (10 if next(_numbers) % 2 else 100))


def elsewhere_now(request: HttpRequest) -> Any:
    return redirect("/books/?secret=4711")


def mine(request: HttpRequest) -> HttpResponse:
    """Only a user sees it; reads the session, the user and the number of books."""
    if not request.user.is_authenticated:
        return HttpResponse(status=403)
    return HttpResponse(f"{request.user.get_username()}: {Book.objects.count()} books")


def two_values(request: HttpRequest) -> HttpResponse:
    """One text with other values in each request, twice."""
    found = [Book.objects.filter(pages=next(_numbers)).count() for _ in range(2)]
    return HttpResponse(str(found))


def settings_of_server(request: HttpRequest) -> HttpResponse:
    """A statement that EXPLAIN refuses, between two that it explains."""
    with connection.cursor() as cursor:
        for sql in ("SELECT 1", "SHOW work_mem", "SELECT count(*) FROM books_book"):
            cursor.execute(sql)
    return HttpResponse("settings")


def busy(request: HttpRequest) -> HttpResponse:
    """One short query, then three milliseconds of CPU time."""
    books, until = Book.objects.count(), time.thread_time() + 0.003
    while time.thread_time() < until:
        pass
    return HttpResponse(str(books))


urlpatterns = [
    *site,
    path("tests/mine/", mine),
    path("tests/busy/", busy),
    path("tests/counting/", counting),
    path("tests/growing/", growing),
    path("tests/atomic/", atomic),
    path("tests/silent/", silent),
    path("tests/writing/", writing),
    path("tests/writing-quietly/", writing_quietly),
    path("tests/writing-first/", writing_first),
    path("tests/writing-by-function/", writing_by_function),
    path("tests/locking/", locking),
    path("tests/elsewhere/", elsewhere),
    path("tests/elsewhere-quietly/", elsewhere_quietly),
    path("tests/mail/", mail),
    path("tests/task/", queue),
    path("tests/broken/", broken),
    path("tests/suspicious/", suspicious),
    path("tests/logging-an-error/", logging_an_error),
    path("tests/two-lengths/", two_lengths),
    path("tests/reading/", reading),
    path("tests/redirect/", elsewhere_now),
    path("tests/two-values/", two_values),
    path("tests/settings/", settings_of_server),
]
