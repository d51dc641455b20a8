"""URLs of a project with pgperf in an AdminSite of its own, beside a default site that has it too."""

from django.contrib import admin
from django.urls import path

from tests.admin.custom_site import urlpatterns as ops

urlpatterns = [path("admin/", admin.site.urls), *ops]
