"""Advice on a server's settings: from what a run's worker stored or a command asked, as table and
JSON.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from pgperf.core.records import REPLICATES, SETTING_SOURCES
from pgperf.models import Database, Run
from pgperf.reports.table import Cell, Table, text_column, words
from pgperf.tuning import sizes
from pgperf.tuning.advice import Finding, statements
from pgperf.tuning.records import DATA_SIZES, PROFILES, STORAGE, USUAL_KB, Server, version_of

Settings = Mapping[str, str | None]
#: Host memory is rounded down to this, so that its shares are readable sizes.
_STEP_KB = 256 * sizes.UNITS["MB"]


@dataclass(frozen=True)
class StoredSettings:
    """A server's settings as the worker of a run found them.

    `memory_kb` and `cpus` are those of the server's host, None if not known. `sources`: where settings
    come from, if not from its configuration files. `replicates`: the server was a standby, or had one
    or a replication slot.
    """

    run: Run
    settings: Settings
    memory_kb: int | None
    cpus: int | None
    sources: Mapping[str, str] = field(default_factory=dict)
    replicates: bool = False

    @property
    def version(self) -> float | None:
        return version_of(str(self.settings.get("server_version") or ""))


def stored(database: Database, runs: QuerySet[Run]) -> StoredSettings | None:
    """From the latest of the runs on the database that stored its server's settings."""
    found = with_setting(runs.filter(database=database), "server_version")
    run = found.only("environment", "finished_at", "benchmark_name").first()
    if run is None:
        return None
    machine = _part(run, "machine") if _part(run, "machine").get("has_server") is True else {}
    elsewhere = _part(run, "server_host").get("processors")
    cpus = machine.get("cpus", machine.get("processors", elsewhere))  # older runs know the worker's only
    memory = _count(machine.get("memory_bytes"))
    sources = {name: str(source) for name, source in _part(run, SETTING_SOURCES).items()}
    return StoredSettings(
        run, _part(run, "server"), usable_kb(memory) if memory else None, _count(cpus), sources,
        replicates=run.environment.get(REPLICATES) is True,
    )  # fmt: skip


def with_setting(runs: QuerySet[Run], name: str) -> QuerySet[Run]:
    """Those of the runs that are done and stored this setting of their server, the latest first."""
    stored_at = f"environment__server__{name}"
    done = runs.filter(status=Run.Status.DONE, **{f"{stored_at}__isnull": False})
    return done.exclude(**{stored_at: None}).order_by("-pk")


def usable_kb(memory_bytes: int) -> int:
    """A host's memory in kB, rounded down to a readable size."""
    kb = memory_bytes // 1024
    return kb // _STEP_KB * _STEP_KB or kb


def advice_table(findings: Sequence[Finding]) -> Table:
    """Present and advised settings."""
    columns = tuple(
        map(text_column, (_("Setting"), _("Present"), _("Advised"), _("Takes effect"), _("Reason")))
    )
    return Table(
        _("Server settings, present and advised"), columns, [_row(each) for each in findings], "advice"
    )


def server_line(server: Server) -> str:
    """What the advice was calculated from."""
    parts = [
        _("PostgreSQL %s") % f"{server.version:g}",
        _("profile %s") % profile_titles()[server.profile],
        _("%s of memory") % sizes.shown(server.memory_kb),
        _("CPUs: %s") % (_("unknown") if server.cpus is None else server.cpus),
        _("storage %s") % storage_titles()[server.storage],
        data_size_titles()[server.data_size],
    ]
    return ", ".join(parts)


def notes(server: Server, findings: Sequence[Finding]) -> list[str]:
    """What to know before the statements are copied."""
    found = []
    if not USUAL_KB[0] <= server.memory_kb <= USUAL_KB[1]:
        low, high = map(sizes.shown, USUAL_KB)
        found.append(
            _("The calculation is made for %(low)s to %(high)s of memory.") % {"low": low, "high": high}
        )
    found += _overridden(findings)
    if statements(findings) and findings[0].in_file:
        found.append(
            _(
                "pgperf changes no setting, and this server has no ALTER SYSTEM. Put the lines into postgresql.conf,"
                " reload or restart the server, and measure before and after: the calculation is a starting point"
                " and knows nothing of your queries."
            )
        )
    elif statements(findings):
        found.append(
            _(
                "pgperf changes no setting. Copy the statements, run them as a superuser, and measure before"
                " and after: the calculation is a starting point and knows nothing of your queries."
            )
        )
    elif all(each.agrees for each in findings):
        found.append(_("All settings are as advised."))
    return found


def _overridden(findings: Sequence[Finding]) -> list[str]:
    """Where the present values come from that no statement here can change."""
    text = _(
        "%(names)s: the present value comes from %(source)s, which goes before the server's configuration. Change it"
        " there. No statement here changes it."
    )
    names: dict[str, list[str]] = {}
    for each in findings:
        if not (each.agrees or each.left_out):
            names.setdefault(each.source, []).append(each.name)
    titles = _source_titles()
    return [
        text % {"names": ", ".join(names[source]), "source": title}
        for source, title in titles.items()
        if source in names
    ]


def _source_titles() -> dict[str, str]:
    """By the `source` of pg_settings."""
    return {
        "command line": _("the command line of the server"),
        "global": _("ALTER ROLE ALL"),
        "database": _("ALTER DATABASE"),
        "user": _("ALTER ROLE of pgperf's login"),
        "database user": _("ALTER ROLE of pgperf's login IN DATABASE"),
    }


def advice_json(database: Database, server: Server, findings: Sequence[Finding]) -> dict[str, Any]:
    """What `pgperf tune --json` prints. null: not known."""
    return {
        "database": database.name,
        "server": {
            "version": server.version,
            "memory_bytes": server.memory_kb * 1024,
            "cpus": server.cpus,
            "profile": server.profile,
            "connections": server.connections,
            "storage": server.storage,
            "data_size": server.data_size,
        },
        "settings": [
            {
                "name": each.name,
                "present": each.present,
                "source": each.source or None,
                "advised": each.advised,
                "agrees": each.agrees,
                "restart": each.restart,
                "why": each.left_out or each.why,
                "statement": None if each.left_out else each.statement,
            }
            for each in findings
        ],
        "statements": statements(findings),
    }


def profile_titles() -> dict[str, str]:
    """For people, by profile."""
    titles = _("web"), _("oltp: many short transactions"), _("dw: data warehouse"), _("mixed"), _("desktop")
    return dict(zip(PROFILES, titles, strict=True))


def storage_titles() -> dict[str, str]:
    titles = _("SSD"), _("NVMe"), _("SAN"), _("hard disk")
    return dict(zip(STORAGE, titles, strict=True))


def data_size_titles() -> dict[str, str]:
    titles = (
        _("the database fits in memory"),
        _("the database is about as large as the memory"),
        _("the database is larger than the memory"),
    )
    return dict(zip(DATA_SIZES, titles, strict=True))


def _row(finding: Finding) -> tuple[Cell, ...]:
    unknown = Cell(_("unknown"), (None,), "unknown")
    effect = _("after a restart") if finding.restart else _("after a reload")
    effect = _("left out") if finding.left_out else effect
    return (
        words(finding.name),
        unknown if finding.present is None else words(finding.present),
        Cell(finding.advised, (finding.advised,), "" if finding.agrees or finding.left_out else "advised"),
        words(_("as it is") if finding.agrees else effect),
        words(_(finding.left_out or finding.why)),
    )


def _part(run: Run, name: str) -> dict[str, Any]:
    found = run.environment.get(name)
    return found if isinstance(found, dict) else {}


def _count(value: object) -> int | None:
    return value if type(value) is int and value > 0 else None
