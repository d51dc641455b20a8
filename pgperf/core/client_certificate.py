"""The client certificate of this process's user, where libpq looks for it.

Only what does not connect by libpq needs this module. Standard library only.
"""

import ssl
from contextlib import suppress
from pathlib import Path


def present(context: ssl.SSLContext) -> None:
    """Let the context present the certificate, if there is one that can be used."""
    with suppress(OSError, RuntimeError):  # no such file, no home, or another key
        folder = Path.home() / ".postgresql"
        context.load_cert_chain(folder / "postgresql.crt", folder / "postgresql.key", password=lambda: "")
