"""URLs of a project with two admin sites that have pgperf, one of them with an index of its own."""

from django.contrib import admin
from django.urls import path

from tests.admin.own_index import urlpatterns as own

urlpatterns = [path("admin/", admin.site.urls), *own]
