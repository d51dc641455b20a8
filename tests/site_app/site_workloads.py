"""Operations that cannot be repeated below the ORM, or fail, each in its own way. 4711 stands for a
secret.
"""

from datetime import date
from itertools import count

from asgiref.sync import sync_to_async
from django.db import connection, connections, transaction

from example.books.models import Book
from pgperf.catalog.orm import Site
from pgperf.registry import workload

_numbers = count(4711)


@workload("tests.dated")
def dated() -> int:
    """A value that JSON does not have."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT %s::date", [date(2026, 11, 21)])
        return len(cursor.fetchall())


@workload("tests.counting")
def counting() -> int:
    return Book.objects.filter(pages=next(_numbers)).count()


@workload("tests.growing")
def growing() -> None:
    for _ in range(next(_numbers) % 7 + 1):
        Book.objects.count()


@workload("tests.atomic")
def atomic() -> int:
    with transaction.atomic():
        return Book.objects.count()


@workload("tests.silent")
def silent() -> None: ...


@workload("tests.several")
def several() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 4711; SELECT 4712")


@workload("tests.reconnecting")
def reconnecting() -> int:
    """The statement before is sent over the connection that it closes."""
    books = Book.objects.count()
    connection.close()
    return books + Book.objects.count()


@workload("tests.writing")
def writing() -> None:
    Book.objects.update(pages=4711)


@workload("tests.elsewhere")
def elsewhere() -> None:
    with connections["other"].cursor() as cursor:
        cursor.execute("SELECT 1")


@workload("tests.failing")
def failing() -> None:
    raise ValueError("card 4711 was declined")


@workload("tests.bad_value")
def bad_value() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT %s::integer", ["x4711"])


@workload("tests.hostile")
def hostile() -> int:
    """A forging server finds it by its comment."""
    return len(list(Site.objects.raw("SELECT 1 AS id /* hostile */")))


@workload("tests.hostile")
async def ahostile() -> int:
    """Django iterates over no raw query asynchronously, so a view would call it like this."""
    return await sync_to_async(hostile)()
