"""URLs of a custom AdminSite and of the collected static files."""

from django.conf import settings
from django.contrib.admin import AdminSite
from django.contrib.auth.models import Group
from django.http import HttpResponse
from django.urls import path, re_path
from django.views.static import serve
from harbour.people.models import Person

from pgperf.admin import register

site = AdminSite(name="ops")
register(site)
site.register([Group, Person])

urlpatterns = [
    path("favicon.ico", lambda request: HttpResponse(status=204)),
    path("ops/", site.urls),
    re_path(r"^static/(?P<path>.*)$", serve, {"document_root": settings.STATIC_ROOT}),
]
