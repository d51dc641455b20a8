"""Sets up Django with the site's settings, for processes that only fork clients of that site."""

import django

django.setup()
