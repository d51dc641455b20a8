"""Sentences with numbers, as a page shows them."""

from django import template
from django.template.defaultfilters import stringfilter

from pgperf.reports import number_format

register = template.Library()


@register.filter(is_safe=True)
@stringfilter
def unbroken(text: str) -> str:
    return number_format.unbroken(text)
