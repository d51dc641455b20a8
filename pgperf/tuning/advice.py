"""A server's present settings beside the advised ones, and the statements that would change them.

Nothing here changes a server: a user copies the statements.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pgperf.core.translation import gettext_noop as _
from pgperf.tuning import pgtune, pgtune_2010, sizes
from pgperf.tuning.records import Advice, Server

#: Settings that a running server does not change.
_RESTART = frozenset(
    {
        "max_connections", "shared_buffers", "huge_pages", "wal_buffers", "max_worker_processes", "wal_level",
        "max_wal_senders", "io_method",
    }
)  # fmt: skip
#: Of a server that writes as little WAL as possible: it starts with all of them only.
_MINIMAL_WAL = {"wal_level": "minimal", "max_wal_senders": "0"}
#: The first version with ALTER SYSTEM.
_ALTER_SYSTEM = 9.4
#: A server rounds sizes to its blocks.
_BLOCK_KB = 8


@dataclass(frozen=True)
class Finding:
    """One setting: present and advised value as SHOW prints them.

    `present` None: not known. `restart`: a change takes effect when the server restarts. `in_file`:
    the server has no ALTER SYSTEM. `source`: that of pg_settings where it goes before the server's
    configuration files, "" else. `risk`: when a server does not start with the advised value;
    `left_out`: why it is known not to, so that no statement sets it.
    """

    name: str
    present: str | None
    advised: str
    why: str
    restart: bool
    in_file: bool = False
    source: str = ""
    risk: str = ""
    left_out: str = ""

    @property
    def agrees(self) -> bool | None:
        """Is the present value the advised one? None: not known."""
        return None if self.present is None else _alike(self.present, self.advised)

    @property
    def statement(self) -> str:
        """The statement that sets the advised value, or the line of postgresql.conf."""
        if self.in_file:
            return f"{self.name} = '{self.advised}'"
        return f"ALTER SYSTEM SET {self.name} = '{self.advised}';"


def advise(server: Server) -> Sequence[Advice]:
    """The advised settings, by the rules for the server's version."""
    rules = pgtune_2010 if server.version < 9.5 else pgtune
    return tuple(rules.advise(server))


def compared(
    server: Server,
    present: Mapping[str, str | None],
    sources: Mapping[str, str] | None = None,
    *,
    replicates: bool = False,
) -> Sequence[Finding]:
    """The advised settings beside the present ones, by name as SHOW prints them. Others that have
    their default may be missing there.

    `sources`: of those that do not come from the server's configuration files, by name. `replicates`:
    the server is a standby, or has one or a replication slot.
    """
    needs_wal = _why_not_minimal(present, sources or {}, replicates)
    return [
        Finding(
            each.name, present.get(each.name), each.value, each.why, _restarts(each.name, server),
            in_file=server.version < _ALTER_SYSTEM, source=(sources or {}).get(each.name, ""), risk=each.risk,
            left_out=needs_wal if each.name in _MINIMAL_WAL else "",
        )
        for each in advise(server)
    ]  # fmt: skip


def _why_not_minimal(present: Mapping[str, str | None], sources: Mapping[str, str], replicates: bool) -> str:
    """Why the server needs more than minimal WAL to start, "" if it is not known to."""
    if (present.get("archive_mode") or "off") != "off":
        return _("left out: the server archives its WAL, and does not start with wal_level = minimal")
    if replicates or present.get("wal_level") == "logical":
        return _("left out: replication is in use, and wal_level = minimal excludes it")
    if present.get("summarize_wal") == "on":
        return _("left out: summarize_wal is on, and the server does not start with wal_level = minimal")
    if any(name in sources and present.get(name) != value for name, value in _MINIMAL_WAL.items()):
        return _("left out: the command line sets wal_level or max_wal_senders, and the server needs both")
    return ""


def statements(findings: Sequence[Finding]) -> list[str]:
    """What to copy: a statement for each setting that is not as advised, or not known, that the
    server's configuration sets and that is not left out.

    First those that a reload puts into effect, with the reload; then those that need a restart.
    Lines of postgresql.conf are without the reload.
    """
    changes = [each for each in findings if not (each.agrees or each.source or each.left_out)]
    at_once = [each.statement for each in changes if not each.restart]
    later = [f"{each.statement}  {_comment(each)}" for each in changes if each.restart]
    reload = ["SELECT pg_reload_conf();"] if at_once and not changes[0].in_file else []
    return [*at_once, *reload, *later]


def _comment(finding: Finding) -> str:
    """Of a setting that needs a restart."""
    return "; ".join(filter(None, (f"{'#' if finding.in_file else '--'} needs a restart", finding.risk)))


def _restarts(name: str, server: Server) -> bool:
    return name in _RESTART or (name == "autovacuum_max_workers" and server.version < 18)


def _alike(present: str, advised: str) -> bool:
    """The same value, however it is spelled: 1024MB and 1GB, 0.90 and 0.9."""
    sizes_kb = sizes.kb(present), sizes.kb(advised)
    if sizes_kb[0] is not None and sizes_kb[1] is not None:
        return abs(sizes_kb[0] - sizes_kb[1]) < _BLOCK_KB
    try:
        return float(present) == float(advised)
    except ValueError:
        return present == advised
