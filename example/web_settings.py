"""The settings of the site's web servers in the steps of example.stack.web_steps.

The stack chooses the database's address and one change for each step by environment variables.
"""

from example.settings import *  # noqa: F403
from example.settings import DATABASES as SITE_DATABASES
from example.settings import MIDDLEWARE as SITE_MIDDLEWARE
from example.settings import STACK

_AUTOCOMMIT = STACK.get("EXAMPLE_AUTOCOMMIT", "1") == "1"
#: A worker has one thread, so a pool of one connection serves it.
_POOL = {"pool": {"min_size": 1, "max_size": 1}} if STACK.get("EXAMPLE_POOL") == "1" else {}
_DEFAULT = SITE_DATABASES["default"]

DATABASES = {
    "default": {
        **_DEFAULT,
        "OPTIONS": {**_DEFAULT["OPTIONS"], **_POOL},
        "CONN_MAX_AGE": None if STACK.get("EXAMPLE_CONN_MAX_AGE") == "kept" else 0,
        "ATOMIC_REQUESTS": STACK.get("EXAMPLE_ATOMIC_REQUESTS") == "1",
        "AUTOCOMMIT": _AUTOCOMMIT,
    }
}

MIDDLEWARE = SITE_MIDDLEWARE if _AUTOCOMMIT else ["example.middleware.commit", *SITE_MIDDLEWARE]
