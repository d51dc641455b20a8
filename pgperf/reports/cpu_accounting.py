"""CPU time of an operation by role, and the parts of its own time, as charts and tables."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace

from django.utils.text import capfirst
from django.utils.translation import gettext as _

from pgperf.analysis.cpu_account import ROLES, CpuAccount, CpuShares, Known
from pgperf.analysis.time_breakdown import PARTS
from pgperf.models import VariantResult
from pgperf.reports import result_keys
from pgperf.reports.chart import Chart, of_times
from pgperf.reports.labels import lacking, load_title, measured, role_names, variant_lines, variant_title
from pgperf.reports.table import Cell, Column, Table, number, percent, text_column, time_column, words
from pgperf.reports.time_parts import time_parts

#: Colours of the parts of an operation's time: a role's CPU time has its colour of everywhere.
_PART_COLOURS = {
    "client": "cpu-client_user",
    "proxy": "cpu-proxy",
    "web": "cpu-web",
    "pooler": "cpu-pooler",
    "server": "cpu-server",
    "server_lock": "wait-Lock",
    "server_io": "wait-IO",
    "unseen": "cpu-unattributed",
}
#: The share of a bar from which on a part can be seen.
_VISIBLE = 0.005
#: Roles that take part only behind a URL.
_WEB = ("proxy", "web")
#: The rest of the time, of which a variant has one.
_REST = ("latency", "waiting", "unseen")


@dataclass(frozen=True)
class Shares:
    """A variant's shares of the CPUs of one host."""

    row: VariantResult
    cpus: float | None
    source: str | None
    share: CpuShares


@dataclass(frozen=True)
class QueueColumn:
    """A column of the table of run queues: a role's part of the CPU account, and the key of that
    part; `is_share`: of 1, `is_time`: µs.
    """

    title: str
    role: str
    part: str
    key: str
    is_share: bool = False
    is_time: bool = False

    def value(self, account: CpuAccount) -> float | None:
        found: Known = getattr(account, self.part)
        return found[self.key]


def cpu(variants: Sequence[VariantResult]) -> Chart:
    """CPU time of one operation by role, in the order of `throughput`'s bars. Unknown stays empty.

    The table alone has the processes that do not serve it: on a busy host they would dwarf the
    others.
    """
    shown = measured(variants)
    names = role_names()
    return of_times(
        {
            "kind": "stack",
            "label": _("CPU time per operation of each variant by role. The table below has the numbers."),
            "axis": _("CPU %s per operation"),
            "rows": [variant_lines(variant) for variant in shown],
            "series": [
                {
                    "name": names[role],
                    "colour": f"cpu-{role}",
                    "values": [v.cpu_us_per_op.get(role) for v in shown],
                }
                for role in result_keys.SERVING
                if any(v.cpu_us_per_op.get(role) for v in shown)
            ],
            "whiskers": [],
            "ends": [_known_sum(variant.cpu_us_per_op) for variant in shown],
        }
    )


def cpu_table(variants: Sequence[VariantResult]) -> Table:
    """CPU time of one operation by role, µs. A role that no variant knows has no column."""
    names = role_names()
    roles = [role for role in result_keys.CPU if _is_shown(role, [v.cpu_us_per_op for v in variants])]
    columns = (text_column(_("Variant")), *_following(names[role] for role in roles))
    rows = [
        (
            words(variant_title(variant)),
            *(_of_role(variant, role, number(variant.cpu_us_per_op.get(role))) for role in roles),
        )
        for variant in variants
    ]
    there = [role for role in result_keys.CPU if role in roles or role not in _WEB]
    asked = [role for role in there if any(role in v.cpu_us_per_op for v in variants)]
    return Table(lacking(_("CPU time per operation"), asked, roles), columns, rows, "cpu")


def _is_shown(role: str, rows: Sequence[Known]) -> bool:
    """Does a variant know the role's figure? That of a web server must not be 0 in all, either."""
    found = [row.get(role) for row in rows]
    return any(found) if role in _WEB else any(value is not None for value in found)


def spent(variants: Sequence[VariantResult]) -> list[tuple[str, Chart]]:
    """Where the time of one operation is spent: a chart for each number of connections, a bar for
    each rung.
    """
    shown = [variant for variant in measured(variants) if variant.cpu_account]
    there = _visible([time_parts(variant) for variant in shown])
    by_count: dict[int, list[VariantResult]] = {}
    for variant in shown:
        by_count.setdefault(variant.identity.connections, []).append(variant)
    workers = max((variant.workers for variant in shown), default=1)
    return [(load_title(count, workers), _spent(rows, there)) for count, rows in sorted(by_count.items())]


def spent_of(variants: Sequence[VariantResult]) -> Chart | None:
    """Where the time of one operation is spent, a bar for each variant; None without CPU accounts."""
    shown = [variant for variant in variants if variant.cpu_account]
    return _spent(shown, _visible([time_parts(variant) for variant in shown])) if shown else None


def spent_shares(variants: Sequence[VariantResult]) -> Chart | None:
    """The same in per cent of each bar, for workloads whose times have no scale in common."""
    chart = spent_of(variants)
    if chart is None:
        return None
    shown = [variant for variant in variants if variant.cpu_account]
    sums = [sum(series["values"][at] or 0.0 for series in chart["series"]) for at in range(len(shown))]
    return {
        **chart,
        "axis": _("% of the time of one operation"),
        "rows": [[variant.workload] for variant in shown],
        "max": 100,
        "series": [
            {
                **series,
                "values": [
                    _percent_of(value, whole) for value, whole in zip(series["values"], sums, strict=True)
                ],
            }
            for series in chart["series"]
        ],
    }


def spent_table(variants: Sequence[VariantResult]) -> Table:
    """The parts of one operation's time, µs. A part that no variant has, has no column."""
    shown = [variant for variant in variants if variant.cpu_account]
    parts = [time_parts(variant) for variant in shown]
    there = _present(parts)
    names = role_names()
    columns = (
        text_column(_("Variant")),
        time_column(_("Time per operation")),
        *(time_column(capfirst(names[part]), follows=True) for part in there),
    )
    rows = [
        (
            words(variant_title(row)),
            number(row.us_per_op),
            *(_of_role(row, part, _part(own, part)) for part in there),
        )
        for row, own in zip(shown, parts, strict=True)
    ]
    return Table(_("Where the time of one operation is spent"), columns, rows, "spent")


def unknown_servers(variants: Sequence[VariantResult]) -> list[str]:
    """Why the server's CPU time is unknown where clients reconnect: a sentence for each reason."""
    shown: dict[str, list[str]] = {}
    for row, account in _accounts(variants):
        if account.server_unknown:
            shown.setdefault(account.server_unknown, []).append(variant_title(row))
    text = _("The server's CPU time is not known for %(variants)s: %(reason)s.")
    return [text % {"variants": ", ".join(names), "reason": reason} for reason, names in shown.items()]


def share_table(variants: Sequence[VariantResult]) -> Table:
    """Each role's share of the time of all CPUs while a variant ran."""
    accounts = [(row, account) for row, account in _accounts(variants) if account.cpus is not None]
    shown = [Shares(row, found.cpus, found.source, found.share) for row, found in accounts]
    return _shares(shown, _("Shares of the host's CPUs"))


def server_share_table(variants: Sequence[VariantResult]) -> Table:
    """The same of the server's host, where that is another one with an agent."""
    hosts = [(row, account.server_host) for row, account in _accounts(variants) if account.server_host]
    shown = [Shares(row, host.cpus, _("agent"), host.share) for row, host in hosts]
    return _shares(shown, _("Shares of the CPUs of the server's host"))


def queue_table(variants: Sequence[VariantResult]) -> Table:
    """Time in run queues and context switches of one operation, and the share of each role's
    busiest process.
    """
    shown = _accounts(variants)
    there = [
        column
        for column in _queue_columns()
        if any(
            column.value(account) is not None and (column.role not in _WEB or account.share.of(column.role))
            for _row, account in shown
        )
    ]
    rows = [
        (
            words(variant_title(row)),
            *(_of_role(row, column.role, _queue_cell(column, account)) for column in there),
        )
        for row, account in shown
    ]
    columns = (text_column(_("Variant")), *map(_queue_column, there))
    return Table(_("Run queues and context switches"), columns, rows, "queue")


def _accounts(variants: Sequence[VariantResult]) -> list[tuple[VariantResult, CpuAccount]]:
    return [(row, account) for row in variants if (account := row.record.cpu_account)]


def _following(titles: Iterable[str]) -> Iterator[Column]:
    """Time columns in one unit."""
    return (time_column(capfirst(title), follows=at > 0) for at, title in enumerate(titles))


def _queue_column(column: QueueColumn) -> Column:
    title = capfirst(column.title)
    return time_column(title) if column.is_time else Column(title)


def _queue_cell(column: QueueColumn, account: CpuAccount) -> Cell:
    value = column.value(account)
    return percent(value) if column.is_share else number(value)


def _spent(shown: Sequence[VariantResult], there: Sequence[str]) -> Chart:
    parts = [time_parts(variant) for variant in shown]
    names = role_names()
    return of_times(
        {
            "kind": "stack",
            "label": _(
                "Where the time of one operation is spent, for each variant. The table below has the numbers."
            ),
            "axis": _("%s per operation"),
            "rows": [_without_clients(variant) for variant in shown],
            "series": [
                {
                    "name": names[part],
                    "colour": _PART_COLOURS.get(part, f"time-{part}"),
                    "values": [own[part] for own in parts],
                }
                for part in there
            ],
            "whiskers": [],
            "ends": [variant.us_per_op for variant in shown],
        }
    )


def _without_clients(variant: VariantResult) -> list[str]:
    """The chart's title says how many there are."""
    return variant_lines(replace(variant.identity, clients=1))


def _percent_of(value: float | None, whole: float) -> float | None:
    return None if value is None or not whole else 100 * value / whole


def _present(parts: Sequence[dict[str, float | None]]) -> list[str]:
    """The parts that take time in some variant."""
    return [part for part in PARTS if any(own[part] for own in parts)]


def _visible(parts: Sequence[dict[str, float | None]]) -> list[str]:
    """Those of the parts that a bar can show."""
    least = [_VISIBLE * sum(us or 0.0 for us in own.values()) for own in parts]
    return [
        part
        for part in _present(parts)
        if any((own[part] or 0.0) > us for own, us in zip(parts, least, strict=True))
    ]


def _of_role(row: VariantResult, role: str, cell: Cell) -> Cell:
    """A dash for a pooler or a web server that takes no part, which is not a measured zero."""
    user = "pooler" if role == "pool_queue" else role
    passing = user in (*_WEB, "pooler")
    direct = passing and row.record.cpu_us_per_op.of(user) == 0
    return Cell("–", cell.values) if direct else cell


def _part(own: dict[str, float | None], part: str) -> Cell:
    """Of those that are the rest, the others are absent, which is not unknown."""
    if part in _REST and own[part] is None and any(own[rest] is not None for rest in _REST):
        return words("–")
    return number(own[part])


def _shares(shown: Sequence[Shares], title: str) -> Table:
    names = role_names()
    shares = [asdict(each.share) for each in shown]
    roles = [role for role in result_keys.SHARE if _is_shown(role, shares)]
    rows = [
        (
            words(variant_title(each.row)),
            *(_of_role(each.row, role, percent(share[role])) for role in roles),
        )
        for each, share in zip(shown, shares, strict=True)
    ]
    columns = (text_column(_("Variant")), *(Column(capfirst(names[role])) for role in roles))
    return Table(_share_caption(title, shown, roles), columns, rows, "shares")


def _share_caption(title: str, shown: Sequence[Shares], roles: Sequence[str]) -> str:
    cpus = ", ".join(dict.fromkeys(f"{each.cpus:.6g}" if each.cpus else _("unknown") for each in shown))
    sources = ", ".join(dict.fromkeys(str(each.source or _("unknown")) for each in shown))
    about = {"title": title, "cpus": cpus, "sources": sources}
    asked = [role for role in result_keys.SHARE if role in roles or role not in _WEB]
    return lacking(_("%(title)s (%(cpus)s); read from: %(sources)s") % about, asked, roles)


def _queue_columns() -> Iterator[QueueColumn]:
    names = role_names()
    switches = {"voluntary": _("%s voluntary switches"), "involuntary": _("%s involuntary switches")}
    for role in ROLES:
        yield QueueColumn(_("%s in the run queue") % names[role], role, "wait_us_per_op", role, is_time=True)
    for role in ROLES:
        for kind, text in switches.items():
            yield QueueColumn(text % names[role], role, "switches_per_op", f"{role}_{kind}")
    for role in ROLES:
        yield QueueColumn(_("%s in the kernel") % names[role], role, "system_share", role, is_share=True)
    for role in ROLES:
        yield QueueColumn(_("busiest %s") % names[role], role, "busiest", role, is_share=True)


def _known_sum(cpu_us: dict[str, float | None]) -> float | None:
    known = [value for role in result_keys.SERVING if (value := cpu_us.get(role)) is not None]
    return sum(known) if known else None
