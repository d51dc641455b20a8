"""URLs of a project with an AdminSite whose apps have another index page."""

from django.contrib.admin import AdminSite
from django.urls import path

from pgperf.admin import register


class OwnIndexSite(AdminSite):
    app_index_template = "admin/app_index.html"


site = OwnIndexSite(name="own")
register(site)
urlpatterns = [path("own/", site.urls)]
