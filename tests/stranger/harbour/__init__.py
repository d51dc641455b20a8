"""A stranger's site: everything about it that a real site may have and the example site has not."""

from harbour.celery import app as celery_app

__all__ = ["celery_app"]
