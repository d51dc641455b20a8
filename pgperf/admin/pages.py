"""What our own pages have in common: the admin's context, our style sheet, and where Chart.js lies, if it was built."""

from typing import Any

from django.contrib import admin
from django.contrib.staticfiles import finders
from django.http import HttpRequest
from django.template.response import TemplateResponse
from django.templatetags.static import static
from django.urls import reverse

from pgperf.checks import CHART_JS


class Styled:
    """Mix into a ModelAdmin: our style sheet on its changelist and change pages."""

    class Media:
        css = {"all": ["pgperf/pgperf.css"]}


def render(
    page: admin.ModelAdmin, request: HttpRequest, template: str, context: dict[str, Any]
) -> TemplateResponse:
    """One of our pages inside the admin site that `page` belongs to."""
    request.current_app = page.admin_site.name
    common = {**page.admin_site.each_context(request), "opts": page.opts, "media": page.media}
    return TemplateResponse(request, template, common | context)


def url(page: admin.ModelAdmin, name: str, *args: Any) -> str:
    """The URL named `name` in the admin site that `page` belongs to."""
    return reverse(f"admin:{name}", args=args, current_app=page.admin_site.name)


def chart_js() -> str:
    """URL of Chart.js; "" where the build step that fetches it has not run, or ran after collectstatic."""
    try:
        return static(CHART_JS) if finders.find(CHART_JS) else ""
    except ValueError:  # the manifest does not have it
        return ""
