"""A verdict in plain words."""

from django.utils.translation import gettext as _

from pgperf.analysis import verdict_kinds
from pgperf.analysis.verdict import WITHDRAWN, Basis, Verdict
from pgperf.models import VariantResult
from pgperf.reports import verdicts


def plain(row: VariantResult) -> str:
    """The verdict on a variant in plain words, with its certainty."""
    verdict = row.record.verdict
    if verdict is None:
        return no_verdict()
    claim = _claim(verdict)
    if verdict.certainty == WITHDRAWN:
        return _("A test has withdrawn the verdict %s.") % verdicts.either(verdict)
    certainty = verdicts.certainty_title(verdict.certainty) if verdict.certainty else ""
    return f"{claim} ({certainty})." if certainty else f"{claim}."


def no_verdict() -> str:
    return _("Not known: this run has no CPU accounts.")


def _claim(verdict: Verdict) -> str:
    """Without its full stop."""
    if verdict_kinds.may_be_hidden(verdict):
        return _("The longest part of the time is %s, or one that the run does not see") % verdicts.either(
            verdict
        )
    if verdict.lead and verdict.lead.is_open:
        return _("The longest part of the time is %s, and the run does not tell which") % verdicts.either(
            verdict
        )
    if verdict.finding.basis == Basis.NO_FREE_CONNECTION:
        return _("All server connections of the pool are in use, and clients wait for one")
    parts = verdict.numbers.parts_us
    if verdict.word == "client_cpu" and (parts.get("interpreter") or 0.0) > (parts.get("client") or 0.0):
        return _("The client’s work and its workers’ waits for each other take the largest part of the time")
    if verdict.finding.basis == Basis.FAILED_REQUESTS:
        return _("Nothing was measured: each slice had a failed request")
    used_up = verdict.finding.basis == Basis.SATURATED and _used_up().get(verdict.word)
    return used_up or _takes_most().get(verdict.word) or verdicts.word_title(verdict.word)


def _takes_most() -> dict[str, str]:
    return {
        "client_cpu": _("The client’s own work takes the largest part of the time"),
        "server_cpu": _("The server’s own work takes the largest part of the time"),
        "pooler_cpu": _("The pooler’s own work takes the largest part of the time"),
        "proxy_cpu": _("The web proxy’s own work takes the largest part of the time"),
        "web_cpu": _("The web server’s own work, with the view, takes the largest part of the time"),
        "interpreter": _(
            "The workers of a client process wait for each other: they share a GIL or an event loop"
        ),
        "web_workers": _("All workers of the web server are busy, and requests wait for one"),
        "network": _("The network of a load host is saturated"),
        "pool_queue": _("The largest part of the time is waiting for a server connection of the pool"),
        "server_lock": _("The largest part of the time is waiting for locks in the server"),
        "server_io": _("The largest part of the time is waiting for the server’s disks"),
        "server_wait": _("The largest part of the time is other waiting in the server"),
        "latency": _(
            "The largest part of the time is waiting between client and server: the network and wake-up"
        ),
        "schedule": _(
            "None: it sustains the rate that was asked for, and its clients wait for their arrival schedule"
        ),
        "disturbed": _("Not known: other work disturbed the measurement too much"),
        "unknown": _("Not known: figures are missing"),
    }


def _used_up() -> dict[str, str]:
    return {
        "client_cpu": _("The clients’ CPUs are saturated"),
        "server_cpu": _("The server’s CPUs are saturated"),
        "pooler_cpu": _("The pooler’s CPU is saturated"),
        "proxy_cpu": _("The web proxy’s CPUs are saturated"),
        "web_cpu": _("The web server’s CPUs are saturated"),
    }
