"""What differs between the admins of the Django versions."""

import django
from django import template

register = template.Library()


@register.simple_tag
def breadcrumbs_are_a_list() -> bool:
    """Does the admin's style sheet expect `ol.breadcrumbs`, as from Django 6.1 on?"""
    return django.VERSION >= (6, 1)
