"""Titles of layers and variants, and the colour that a layer has in every chart."""

from collections.abc import Iterable, Sequence

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from pgperf.analysis.time_breakdown import PART_TITLES
from pgperf.core.layers import LAYERS, OTHER
from pgperf.core.records import LeftOut, Variant
from pgperf.models import VariantResult

_ROLE_NAMES = {
    "client_user": gettext_lazy("client, user"),
    "client_sys": gettext_lazy("client, system"),
    "clients": gettext_lazy("clients"),
    "auxiliaries": gettext_lazy("server auxiliaries"),
    "runner": gettext_lazy("pgperf itself"),
    "other": gettext_lazy("other processes"),
    "unattributed": gettext_lazy("unattributed"),
    "iowait": gettext_lazy("iowait"),
    "steal": gettext_lazy("steal"),
    "idle": gettext_lazy("idle"),
    **{part: gettext_lazy(title) for part, title in PART_TITLES.items()},
}


def layer_title(layer: str) -> str:
    """A layer's name as people know it; its own name where this version does not know it."""
    return LAYERS[layer].title if layer in LAYERS else layer


def layer_notes(variants: Sequence[VariantResult]) -> list[str]:
    """What to know about the figures of several workers, and of each layer that has a note."""
    measured_layers = dict.fromkeys(variant.layer for variant in variants)
    own = [_(LAYERS[layer].note) for layer in measured_layers if layer in LAYERS and LAYERS[layer].note]
    return [*filter(None, [workers_note(variants)]), *own]


def colour(layer: str) -> dict[str, str]:
    """The layer's colour in every chart, on a light and on a dark page; layers of one family share
    it.
    """
    family = LAYERS[layer].family if layer in LAYERS else OTHER
    return {"light": family.light, "dark": family.dark}


def left_out_title(left: LeftOut) -> str:
    """What a run left out, with the title of its layer."""
    return left.titled(layer_title(left.layer))


def reasons(skipped: Iterable[LeftOut]) -> dict[str, list[str]]:
    """Why parts were left out: the parts that share each reason."""
    found: dict[str, list[str]] = {}
    for each in skipped:
        found.setdefault(each.reason, []).append(left_out_title(each))
    return found


def variant_title(variant: Variant | VariantResult) -> str:
    """A variant as people know it: its label with the layer's title instead of its name."""
    return " · ".join((layer_title(variant.layer), *variant.details))


def variant_lines(variant: Variant | VariantResult) -> list[str]:
    """The same over two lines: the layer, then all the rest."""
    return [layer_title(variant.layer), " · ".join(variant.details)]


def field_title(variant: Variant, name: str) -> str:
    """The value of one of a variant's fields as people read it."""
    if name == "clients":
        return clients_title(variant.clients)
    if name == "rate":
        return rate_title(variant.rate)
    if name == "hosts":
        return hosts_title(variant.hosts)
    if name == "workers":
        return workers_title(variant.workers)
    value = str(getattr(variant, name))
    return layer_title(value) if name == "layer" else value.replace("_", " ")


def measured(variants: Sequence[VariantResult]) -> list[VariantResult]:
    """The variants without the controls' duplicates."""
    return [variant for variant in variants if not variant.control]


def lacking(caption: str, asked: Iterable[str], known: Iterable[str]) -> str:
    """A table's caption with the roles of which nothing is known, if there are any."""
    names, there = role_names(), set(known)
    unseen = ", ".join(names[role] for role in asked if role not in there)
    if not unseen:
        return caption
    return _("%(caption)s; not known here: %(roles)s") % {"caption": caption, "roles": unseen}


def clients_title(count: int) -> str:
    return ngettext("%d client", "%d clients", count) % count


def workers_title(count: int) -> str:
    """How many workers each client process has."""
    return ngettext("%d worker", "%d workers", count) % count


def connections_title(count: int) -> str:
    return ngettext("%d connection", "%d connections", count) % count


def rate_title(rate: float | None) -> str:
    """A rate of an open loop, or that there is none."""
    return _("closed loop") if rate is None else _("%s operations/s") % f"{rate:.12g}"


def hosts_title(hosts: int) -> str:
    """How many load hosts share the clients, or that the run's own worker has them."""
    return ngettext("%d load host", "%d load hosts", hosts) % hosts if hosts else _("no load hosts")


def load_title(connections: int, workers: int) -> str:
    """A number of clients; of connections where a client process has several workers."""
    return clients_title(connections) if workers == 1 else connections_title(connections)


def workers_note(variants: Iterable[VariantResult]) -> str:
    """What the number of workers in the labels means; "" where each process has one."""
    workers = max((row.workers for row in variants), default=1)
    if workers == 1:
        return ""
    return _(
        "%(workers)d workers: each client process has %(workers)d threads, or %(workers)d tasks of an event loop"
        " in an asynchronous layer, each with a connection of its own. The threads of a Python process, or the"
        " tasks of a loop, share one CPU. Several clients are as many processes."
    ) % {"workers": workers}


def role_names() -> dict[str, str]:
    """The roles that use CPU time, and the other parts of an operation's time, as people read them."""
    return {role: str(name) for role, name in _ROLE_NAMES.items()}


def role_title(role: str | None) -> str:
    """A role as people read it; its own name where this version does not know it."""
    return str(_ROLE_NAMES.get(str(role), role))
