"""A third-party site with features that the example site lacks."""

from harbour.celery import app as celery_app

__all__ = ["celery_app"]
