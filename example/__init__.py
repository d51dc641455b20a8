"""A small Django site with pgperf installed, and the stack of servers that it uses."""

from example.celery import app as celery_app

__all__ = ["celery_app"]
