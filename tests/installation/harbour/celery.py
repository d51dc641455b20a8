"""The site's Celery application."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "harbour.settings")

app = Celery("harbour")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
