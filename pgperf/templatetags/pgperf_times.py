"""When something happened, as "5 seconds ago"."""

from django import template
from django.contrib.humanize.templatetags.humanize import naturaltime

register = template.Library()

register.filter("ago", naturaltime)
