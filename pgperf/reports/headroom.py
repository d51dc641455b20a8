"""The resources that a run needs, with their limits.

The page knows the plan and the settings. The worker checks the server's free connections and its
machine's free memory before the run starts. An earlier run may tell the server's limit.
"""

from dataclasses import dataclass
from math import ceil

from django.contrib.auth.models import AnonymousUser
from django.template.defaultfilters import filesizeformat
from django.utils.translation import gettext as _

from pgperf.access import permissions
from pgperf.conf import get_settings
from pgperf.models import Database, Run
from pgperf.reports import number_format
from pgperf.reports.server_advice import with_setting
from pgperf.runner.memory import MEMORY_SHARE, MIB
from pgperf.runner.preflight import ResourceEstimate


@dataclass(frozen=True)
class Need:
    """One thing a run takes.

    `asked`: what checks whether it is there. `problem`: why it will be refused, or "".
    """

    title: str
    takes: str
    may_take: str
    asked: str
    problem: str = ""


def headroom(need: ResourceEstimate, time: str, database: Database) -> list[Need]:
    """Connections, memory and time of a run on the database; `time` in words."""
    return [_connections(need, database), _memory(need), _time(need, time)]


def _connections(need: ResourceEstimate, database: Database) -> Need:
    share, limit = get_settings().CONNECTION_SHARE, _limit(database)
    free = ceil(need.connections / share) if share else need.connections
    may_take = _("at most %(share)s of the server's free connections, so %(free)d must be free") % {
        "share": _percent(share), "free": free,
    }  # fmt: skip
    if limit is None:
        return Need(_("Connections"), str(need.connections), may_take, _by_worker())
    told = _("the last run here found max_connections = %d") % limit
    problem = _(
        "%(free)d connections must be free, but %(told)s. The worker refuses this run unless the limit was raised."
    )
    return Need(
        _("Connections"), str(need.connections), may_take, f"{_by_worker()}; {told}",
        problem % {"free": free, "told": told} if free > limit else "",
    )  # fmt: skip


def _memory(need: ResourceEstimate) -> Need:
    if most := get_settings().RUN_MEMORY_MB * MIB:
        limit = _("at most %s (PGPERF['RUN_MEMORY_MB']), if so much is free") % filesizeformat(most)
        problem = _("This takes more than PGPERF['RUN_MEMORY_MB'] allows: the worker refuses this run.")
        return Need(
            _("Memory"), filesizeformat(need.memory_bytes), limit, _by_worker(),
            problem if need.memory_bytes > most else "",
        )  # fmt: skip
    free = filesizeformat(need.memory_bytes / MEMORY_SHARE)
    may_take = _("at most %(share)s of the free memory of the worker's machine, so %(free)s must be free") % {
        "share": _percent(MEMORY_SHARE), "free": free,
    }  # fmt: skip
    return Need(_("Memory"), filesizeformat(need.memory_bytes), may_take, _by_worker())


def _time(need: ResourceEstimate, takes: str) -> Need:
    most = get_settings().MAX_RUN_SECONDS
    problem = _("This takes longer than PGPERF['MAX_RUN_SECONDS'] allows: the worker refuses this run.")
    return Need(
        _("Time"), takes, number_format.seconds(most), _("this page"), problem if need.seconds > most else ""
    )


def _percent(share: float) -> str:
    return f"{number_format.whole(round(share * 100))} %"


def _by_worker() -> str:
    return _("the worker, before it starts")


def _limit(database: Database) -> int | None:
    """The server's max_connections, by the last finished run that stored it and everybody may see."""
    visible = permissions.visible(Run.objects.filter(database=database), AnonymousUser())
    found = with_setting(visible, "max_connections")
    told = str(found.values_list("environment__server__max_connections", flat=True).first())
    return int(told) if told.isascii() and told.isdigit() else None
