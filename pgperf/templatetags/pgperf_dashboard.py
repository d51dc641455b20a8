"""The dashboard of the user who opens a page of the admin."""

from django import template
from django.template import Context

from pgperf.reports.dashboard import Dashboard, Viewer, read

register = template.Library()


@register.simple_tag(takes_context=True)
def dashboard(context: Context) -> Dashboard:
    """The page must have the context of `AdminSite.each_context`."""
    return read(Viewer.of(context["request"].user, context["available_apps"]))
