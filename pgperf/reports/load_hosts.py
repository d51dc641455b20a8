"""The load hosts of a run: how busy each was, and those that the run lost on the way."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from pgperf.analysis.load_hosts import LoadHostUse
from pgperf.models import VariantResult
from pgperf.reports import comparisons
from pgperf.reports.labels import hosts_title, measured, variant_title
from pgperf.reports.run_rows import RunRows
from pgperf.reports.table import Cell, Column, Table, exact, file_columns, number, percent, text_column, words


@dataclass(frozen=True)
class _Blocks:
    """The blocks of a variant with load hosts: how many, how many of them had fewer hosts than its
    title says, and how few.
    """

    hosts: int
    all: int
    fewer: int
    left: tuple[int, ...]

    @classmethod
    def of(cls, row: VariantResult) -> "_Blocks":
        account = row.record.cpu_account
        found = {int(hosts): count for hosts, count in (account.load_host_blocks if account else {}).items()}
        left = tuple(hosts for hosts in found if hosts < min(row.hosts, row.clients))
        return cls(row.hosts, sum(found.values()), sum(found[hosts] for hosts in left), left)

    def sentence(self, lost: str) -> str:
        text = ngettext(
            "%(lost)s: of the variants with %(hosts)s, %(fewer)d of %(all)d block had %(left)s.",
            "%(lost)s: of the variants with %(hosts)s, %(fewer)d of %(all)d blocks had %(left)s.",
            self.all,
        )
        left = _(" or ").join(map(str, sorted(self.left)))
        return text % {
            "lost": lost, "hosts": hosts_title(self.hosts), "fewer": self.fewer, "all": self.all, "left": left,
        }  # fmt: skip


def use_table(variants: Sequence[VariantResult]) -> Table:
    """How busy each load host of each variant was."""
    columns = (
        text_column(_("Variant"), "label"),
        text_column(_("Load host"), "name"),
        Column(_("CPUs for clients"), keys=("cpus",)),
        Column(_("Used by clients"), keys=("clients",)),
        Column(_("All CPUs busy"), keys=("busy",)),
        Column(_("Steal"), keys=("steal",)),
        Column(_("Network"), keys=("network",)),
        *file_columns(("machine_cpus",)),
    )
    accounts = [(row, account) for row in variants if (account := row.record.cpu_account)]
    rows = [_use(row, host) for row, account in accounts for host in account.load_hosts]
    return Table(_("Load hosts"), columns, rows, "load-hosts")


def all_uses(rows: RunRows) -> Table:
    """The same of all variants, the controls too, as files have it."""
    return use_table(rows.variants)


def _use(row: VariantResult, host: LoadHostUse) -> tuple[Cell, ...]:
    shares = (host.clients, host.busy, host.steal, host.network)
    return (
        words(variant_title(row), row.label),
        words(host.name, host.name),
        number(host.cpus),
        *map(percent, shares),
        exact(host.machine_cpus),
    )


def lost(rows: RunRows) -> list[str]:
    """What the loss of load hosts means for the figures: a sentence for each number of load hosts that
    some blocks had fewer of.
    """
    names = list((rows.run.environment.get("load_hosts") or {}).get("lost") or {})
    if not names:
        return []
    text = ngettext("Load host %s was lost", "Load hosts %s were lost", len(names)) % ", ".join(names)
    replaced = ngettext("%s; others took its part.", "%s; others took their parts.", len(names))
    return [each.sentence(text) for each in _with_fewer(rows)] or [replaced % text]


def comparison_notes(rows: RunRows) -> list[str]:
    """The same where numbers of load hosts are compared."""
    compared = any(comparisons.kind(row) == comparisons.ComparisonKind.HOSTS for row in rows.comparisons)
    return lost(rows) if compared else []


def _with_fewer(rows: RunRows) -> Iterator[_Blocks]:
    """Of each number of load hosts the variant that had fewer in the most blocks: a lost host does not
    return, so these have the blocks of the others among them.
    """
    found = [_Blocks.of(row) for row in measured(rows.variants) if row.hosts]
    for hosts in sorted({each.hosts for each in found}):
        most = max((each for each in found if each.hosts == hosts), key=lambda each: each.fewer)
        if most.fewer:
            yield most
