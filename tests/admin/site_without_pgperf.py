"""URLs of a project with pgperf in an AdminSite of its own, beside a default site without it."""

from django.contrib.admin import AdminSite
from django.urls import path

from tests.admin.custom_site import urlpatterns as ops

urlpatterns = [path("admin/", AdminSite(name="admin").urls), *ops]
