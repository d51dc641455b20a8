"""A small real Django site with pgperf installed, and the stack it stands on."""

from example.celery import app as celery_app

__all__ = ["celery_app"]
