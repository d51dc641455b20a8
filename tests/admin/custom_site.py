"""URLs of a project with its own AdminSite under another name."""

from django.contrib.admin import AdminSite
from django.urls import path

from pgperf.admin import register

site = AdminSite(name="ops")
register(site)
urlpatterns = [path("ops/", site.urls)]
