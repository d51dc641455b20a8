"""The workers and agents that are online."""

import platform
import re
from collections.abc import Sequence
from dataclasses import dataclass

import django
from django.utils.translation import gettext as _

import pgperf
from pgperf.core.layers import LAYERS, connects
from pgperf.models import Worker
from pgperf.reports.labels import layer_title
from pgperf.reports.run_json import live_workers
from pgperf.runs import state

#: What comes before the remedy in the reason why a layer cannot run.
_REMEDY = re.compile(r": | \(")


@dataclass(frozen=True)
class Workers:
    """Those that were heard of lately."""

    workers: Sequence[Worker]
    agents: Sequence[Worker]
    load_hosts: Sequence[Worker] = ()


def online() -> Workers:
    """In six queries."""
    return Workers(live_workers(), list(state.live_agents()), list(state.live_load_workers()))


def lacking(worker: Worker) -> str:
    """The layers that it cannot run, with the reasons, but not the remedies; "" if it can run all."""
    found: dict[str, list[str]] = {}
    for name in dict.fromkeys((*LAYERS, *worker.layers)):
        reason = worker.layers.get(name)
        if reason and connects(name):
            found.setdefault(_REMEDY.split(reason)[0], []).append(layer_title(name))
    return "; ".join(f"{', '.join(titles)}: {reason}" for reason, titles in found.items())


def other_versions(worker: Worker, *, agent: bool = False) -> str:
    """The versions that differ from those of this site; "" if none differ. An agent has the site's
    pgperf, under any Python and Django.
    """
    own = {"pgperf": pgperf.__version__}
    if not agent:
        own |= {"django": django.get_version(), "python": platform.python_version()}
    found = {name: worker.versions.get(name) for name in own}
    differ = [name for name in own if found[name] and found[name] != own[name]]
    text = _("%(name)s %(theirs)s, here %(ours)s")
    return "; ".join(text % {"name": name, "theirs": found[name], "ours": own[name]} for name in differ)
