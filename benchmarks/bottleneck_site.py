"""A site whose pages have known bottlenecks: its settings, URLs and views.

The sizes are in the query string. The environment has the address of the database.
"""

import os
from typing import Any

from django.core.wsgi import get_wsgi_application
from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.template import engines
from django.urls import path

SECRET_KEY = "only for measurements on this machine"
ALLOWED_HOSTS = ["127.0.0.1"]
ROOT_URLCONF = __name__
INSTALLED_APPS: list[str] = []
USE_TZ = True
TEMPLATES = [{"BACKEND": "django.template.backends.django.DjangoTemplates"}]
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "HOST": "127.0.0.1",
        "PORT": os.environ.get("PGPERF_DB_PORT", "5432"),
        "NAME": os.environ.get("PGPERF_DB_NAME", ""),
        "USER": os.environ.get("PGPERF_DB_USER", ""),
        "PASSWORD": os.environ.get("PGPERF_DB_PASSWORD", ""),
        "CONN_MAX_AGE": None,
    }
}

_ROWS = (
    "{% for each in rows %}<li>{{ each|stringformat:'05d' }} {{ each|divisibleby:3|yesno }}</li>{% endfor %}"
)


def home(request: HttpRequest) -> HttpResponse:
    return HttpResponse(str(_value("SELECT 1")))


def slow_template(request: HttpRequest) -> HttpResponse:
    """One short query, and a template of `size` rows."""
    first = _value("SELECT 1")
    template = engines["django"].from_string(_ROWS)
    return HttpResponse(template.render({"rows": range(first, first + _size(request))}))


def slow_query(request: HttpRequest) -> HttpResponse:
    """A query that counts `size` thousand rows."""
    return HttpResponse(str(_value("SELECT count(*) FROM generate_series(1, %s)", 1000 * _size(request))))


def many_queries(request: HttpRequest) -> HttpResponse:
    """`size` short queries, one after the other."""
    return HttpResponse(str(sum(_value("SELECT %s", at) for at in range(_size(request)))))


def _size(request: HttpRequest) -> int:
    return int(request.GET["size"])


def _value(sql: str, *args: Any) -> int:
    with connection.cursor() as cursor:
        cursor.execute(sql, args)
        return int(cursor.fetchone()[0])


urlpatterns = [
    path("", home),
    path("slow-template/", slow_template),
    path("slow-query/", slow_query),
    path("many-queries/", many_queries),
]


def application() -> Any:
    """The WSGI application, for gunicorn."""
    return get_wsgi_application()
