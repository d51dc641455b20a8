"""The site as a WSGI application."""

import gc
import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "example.settings")

application = get_wsgi_application()

if os.environ.get("EXAMPLE_GC_FREEZE") == "1":  # what the start has made stays: never look at it again
    gc.collect()
    gc.freeze()
