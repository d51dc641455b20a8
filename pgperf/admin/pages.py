"""Helpers of pgperf's own pages: the admin context, the style sheet and the URL of Chart.js."""

from typing import Any

from django.contrib import admin
from django.contrib.staticfiles import finders
from django.http import HttpRequest
from django.template.response import TemplateResponse
from django.templatetags.static import static
from django.urls import reverse

from pgperf.checks import CHART_JS
from pgperf.runs.reader import same_reader


class StylesheetMixin:
    """Adds pgperf's style sheet to a ModelAdmin's changelist and change pages."""

    class Media:
        css = {"all": ["pgperf/pgperf.css"]}


def render(
    page: admin.ModelAdmin, request: HttpRequest, template: str, context: dict[str, Any]
) -> TemplateResponse:
    """Render a pgperf template inside the admin site that `page` belongs to."""
    request.current_app = page.admin_site.name
    common = {**page.admin_site.each_context(request), "opts": page.opts, "media": page.media}
    return _Page(request, template, common | context)


class _Page(TemplateResponse):
    @property
    def rendered_content(self) -> str:
        with same_reader():
            return super().rendered_content


def url(page: admin.ModelAdmin, name: str, *args: Any) -> str:
    """The URL named `name` in the admin site that `page` belongs to."""
    return reverse(f"admin:{name}", args=args, current_app=page.admin_site.name)


def dashboard_url(page: admin.ModelAdmin) -> str:
    """The app's index; a page of its own where the site shows another page there."""
    if page.admin_site.app_index_template:
        return url(page, "pgperf_run_dashboard")
    return url(page, "app_list", page.opts.app_label)


def chart_js() -> str:
    """URL of Chart.js; "" if it was not built, or was built after collectstatic."""
    try:
        return static(CHART_JS) if finders.find(CHART_JS) else ""
    except ValueError:  # the manifest does not have it
        return ""
