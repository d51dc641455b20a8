"""The dashboard of the user who opens a page of the admin."""

from typing import Any

from django import template
from django.core.exceptions import ImproperlyConfigured
from django.template import Context

from pgperf.models import Run
from pgperf.reports.dashboard import Dashboard, Viewer, read

register = template.Library()


@register.simple_tag(takes_context=True)
def dashboard(context: Context) -> Dashboard:
    """The page must be one of an AdminSite that has pgperf's pages."""
    request = context["request"]
    return read(Viewer.of(request, _site(request)))


def _site(request: Any) -> Any:
    """The one whose page it is, as the template tag `url` finds it: by its name. Raises
    ImproperlyConfigured if there is none.
    """
    from django.contrib.admin.sites import all_sites  # a site without the admin loads this module, too

    name = getattr(request, "current_app", None) or request.resolver_match.namespace
    for site in all_sites:
        if site.name == name and site.is_registered(Run):
            return site
    raise ImproperlyConfigured(
        f"The tag dashboard is for a page of an AdminSite that has pgperf's pages; none is named {name!r}."
    )
