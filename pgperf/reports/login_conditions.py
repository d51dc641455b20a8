"""Authentication and TLS of compared routes: a sentence for each pair in which they differ."""

from collections.abc import Iterator, Mapping
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from pgperf.core.records import CONNECTIONS
from pgperf.models import ComparisonResult
from pgperf.reports import number_format
from pgperf.reports.run_rows import RunRows

Conditions = Mapping[str, Any]


def notes(rows: RunRows) -> list[str]:
    """Where routes are compared whose clients log in differently, what that means for the ratio.

    Authentication counts only where clients reconnect: others log in before anything is timed.
    """
    logins = rows.run.environment.get(CONNECTIONS) or {}
    found = (
        note for row in rows.comparisons if (pair := _logins(row, logins)) for note in _notes(row, *pair)
    )
    return list(dict.fromkeys(found))


def _logins(row: ComparisonResult, logins: Mapping[str, Conditions]) -> tuple[Conditions, Conditions] | None:
    """The conditions of both routes; None if it is one route, or one of them is unknown."""
    own, base = logins.get(row.variant.route), logins.get(row.baseline.route)
    return (own, base) if own and base and row.variant.route != row.baseline.route else None


def _notes(row: ComparisonResult, own: Conditions, base: Conditions) -> Iterator[str]:
    reconnects = row.variant.identity.reconnects or row.baseline.identity.reconnects
    names = {"route": row.variant.route, "baseline": row.baseline.route}
    methods = {"own": authentication_text(own), "base": authentication_text(base)}
    if reconnects and methods["own"] != methods["base"]:
        text = _(
            "Clients log in to %(route)s and %(baseline)s in different ways (%(own)s; %(base)s). Where "
            "they reconnect, the ratio contains that difference: a login by SCRAM with 4,096 iterations "
            "takes about 5 ms of CPU time in libpq, and 1 ms in the server or 0.2 ms in PgBouncer. "
            "Compare routes with one kind of login."
        )
        yield text % {**names, **methods}
    tls = {"own": tls_text(own), "base": tls_text(base)}
    if tls["own"] != tls["base"]:
        text = _(
            "Connections to %(route)s and %(baseline)s differ in TLS (%(own)s; %(base)s). It encrypts each "
            "message, and where clients reconnect, each connection begins with its handshake."
        )
        yield text % {**names, **tls}


def authentication_text(login: Conditions) -> str:
    """The method, with the iterations of SCRAM."""
    method, iterations = login.get("authentication"), login.get("scram_iterations")
    if method is None:
        return _("an unknown method")
    if not iterations:
        return str(method)
    text = ngettext("%(method)s with %(count)s iteration", "%(method)s with %(count)s iterations", iterations)
    return text % {"method": method, "count": number_format.whole(iterations)}


def tls_text(login: Conditions) -> str:
    """The version of TLS."""
    tls = login.get("tls")
    if tls is None:
        return _("not known")
    return _("no TLS") if tls == "none" else str(tls)
