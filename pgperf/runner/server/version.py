"""The versions of PostgreSQL that pgperf measures."""

from pgperf.core.answers import WHOLE, ControlQuery
from pgperf.core.exceptions import PreflightRefused

#: The first of them. The oldest Django that pgperf supports takes no older server either.
LEAST = 14
#: Such as 140012 for PostgreSQL 14.12.
NUMBER = ControlQuery("its version", "SELECT current_setting('server_version_num')::int", (WHOLE,))


def check(number: int) -> None:
    """Raises PreflightRefused for an older server, with the remedy."""
    if number < LEAST * 10_000:
        raise PreflightRefused(
            f"database: the server is PostgreSQL {_title(number)}, and pgperf measures PostgreSQL {LEAST} or newer; "
            "upgrade the server, or measure a newer one"
        )


def _title(number: int) -> str:
    """Before PostgreSQL 10, a version had three parts."""
    major, rest = divmod(number, 10_000)
    return f"{major}.{rest}" if major >= 10 else f"{major}.{rest // 100}.{rest % 100}"
