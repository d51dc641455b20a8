"""The URLs of a site that has none."""

from django.urls import URLPattern

urlpatterns: list[URLPattern] = []
