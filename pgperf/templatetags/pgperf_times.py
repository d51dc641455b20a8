"""When something happened: as "5 seconds ago", or as a date that is never broken over two lines."""

from django import template
from django.contrib.humanize.templatetags.humanize import naturaltime

from pgperf.runs.dates import moment

register = template.Library()

register.filter("ago", naturaltime)
register.filter("moment", moment)
