"""URLs of a site whose admin is its own AdminSite, under another name."""

from django.contrib.admin import AdminSite
from django.urls import path

from pgperf.admin import register

site = AdminSite(name="ops")
register(site)
urlpatterns = [path("ops/", site.urls)]
