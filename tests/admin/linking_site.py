"""URLs of a project with an AdminSite whose navigation has plain links beside the models."""

from typing import Any

from django.contrib.admin import AdminSite
from django.http import HttpRequest
from django.urls import path

from pgperf.admin import register

LINK = "https://status.example"


class LinkingSite(AdminSite):
    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> list[Any]:
        links = {"name": "Links", "app_label": "links", "models": [{"name": "Status", "admin_url": LINK}]}
        return [*super().get_app_list(request, app_label), links]


site = LinkingSite(name="linking")
register(site)
urlpatterns = [path("linking/", site.urls)]
