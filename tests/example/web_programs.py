"""Which web servers this machine has. `make nginx` and `make web` install them."""

import shutil
from importlib.util import find_spec
from pathlib import Path

HAS_NGINX = bool(shutil.which("nginx") or Path("/usr/sbin/nginx").exists())
HAS_APACHE = find_spec("mod_wsgi") is not None and Path("/usr/sbin/apache2").exists()

#: A step of each kind, as far as its programs are there.
STARTED = [
    "web_gunicorn",
    *(["web_tls", "web_pool", "web_no_autocommit", "web_advised"] if HAS_NGINX else []),
    *(["web_apache"] if HAS_APACHE else []),
]
