"""Sets up Django with the site's settings, for processes that only fork clients of that site."""

import django
from django.conf import settings

settings.DEBUG = False  # as a client does before it sets Django up
django.setup()
