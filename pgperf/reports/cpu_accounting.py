"""Whose processor time an operation takes, and where its own time is spent, as charts and tables."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from django.utils.translation import gettext as _

from pgperf.analysis.scheduler_states import PARTS
from pgperf.models import VariantResult
from pgperf.reports import number_format, result_keys
from pgperf.reports.chart import Chart
from pgperf.reports.labels import lacking, measured, role_names, variant_lines, variant_title
from pgperf.reports.run_json import time_us_per_op
from pgperf.reports.table import Cell, Column, Table, number, percent, text_column, words

#: What the parts of an operation's time look like: a role's processor time as everywhere else.
_PART_COLOURS = {
    "client": "cpu-client_user",
    "pooler": "cpu-pooler",
    "server": "cpu-server",
    "unseen": "cpu-unattributed",
}


#: What is a share in the books, not a number per operation.
_SHARES = ("busiest", "system_share")

Account = Mapping[str, Any]


def cpu(variants: Sequence[VariantResult]) -> Chart:
    """Processor time of one operation by who spent it, in the order of `throughput`'s bars. Unknown stays empty.

    Those who do not serve it are left to the table: on a busy host they would dwarf it.
    """
    shown = measured(variants)
    names = role_names()
    return {
        "kind": "stack",
        "label": _("Processor time per operation of each variant by role. The table below has the numbers."),
        "axis": _("CPU µs per operation"),
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
        "ends": [number_format.number(_known_sum(variant.cpu_us_per_op)) for variant in shown],
    }


def cpu_table(variants: Sequence[VariantResult]) -> Table:
    """Processor time of one operation by who spent it, µs. A role that no variant knows has no column."""
    names = role_names()
    roles = [role for role in result_keys.CPU if any(v.cpu_us_per_op.get(role) is not None for v in variants)]
    columns = (text_column(_("Variant")), *(Column(names[role], "µs") for role in roles))
    rows = [
        (words(variant_title(variant)), *(number(variant.cpu_us_per_op.get(role)) for role in roles))
        for variant in variants
    ]
    asked = [role for role in result_keys.CPU if any(role in v.cpu_us_per_op for v in variants)]
    return Table(lacking(_("Processor time per operation"), asked, roles), columns, rows, "cpu")


def spent(variants: Sequence[VariantResult]) -> list[tuple[int, Chart]]:
    """Where the time of one operation is spent: a chart for each number of clients, a bar for each rung."""
    shown = [variant for variant in measured(variants) if variant.cpu_account]
    there = _present([time_us_per_op(variant) for variant in shown])
    counts = sorted({variant.clients for variant in shown})
    return [(count, _spent([row for row in shown if row.clients == count], there)) for count in counts]


def spent_table(variants: Sequence[VariantResult]) -> Table:
    """The parts of one operation's time, µs. A part that no variant has, has no column."""
    shown = [variant for variant in variants if variant.cpu_account]
    parts = [time_us_per_op(variant) for variant in shown]
    there = _present(parts)
    names = role_names()
    columns = (
        text_column(_("Variant")),
        Column(_("µs per operation")),
        *(Column(names[part], "µs") for part in there),
    )
    rows = [
        (words(variant_title(row)), number(row.us_per_op), *(_part(own, part) for part in there))
        for row, own in zip(shown, parts, strict=True)
    ]
    return Table(_("Where the time of one operation is spent"), columns, rows, "spent")


def share_table(variants: Sequence[VariantResult]) -> Table:
    """Each role's share of all processors' time while a variant ran."""
    shown = [(row, row.cpu_account) for row in variants if row.cpu_account.get("share")]
    return _shares(shown, _("Shares of the host's processors"))


def server_share_table(variants: Sequence[VariantResult]) -> Table:
    """The same of the server's host, where that is another and has an agent."""
    shown = [(row, row.cpu_account["server_host"]) for row in variants if row.cpu_account.get("server_host")]
    return _shares(shown, _("Shares of the processors of the server's host"))


def queue_table(variants: Sequence[VariantResult]) -> Table:
    """Waits for a processor and context switches of one operation, and how busy each role's busiest process was."""
    shown = [variant for variant in variants if variant.cpu_account]
    wanted = _queue_columns()
    there = [key for key in wanted if any(_nested(row, key) is not None for row in shown)]
    columns = (text_column(_("Variant")), *(Column(wanted[key]) for key in there))
    rows = [
        (
            words(variant_title(row)),
            *(
                percent(_nested(row, key)) if key[0] in _SHARES else number(_nested(row, key))
                for key in there
            ),
        )
        for row in shown
    ]
    return Table(_("Waiting for a processor, and context switches"), columns, rows, "queue")


def _spent(shown: Sequence[VariantResult], there: Sequence[str]) -> Chart:
    parts = [time_us_per_op(variant) for variant in shown]
    names = role_names()
    return {
        "kind": "stack",
        "label": _(
            "Where the time of one operation is spent, for each variant. The table below has the numbers."
        ),
        "axis": _("µs per operation"),
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
        "ends": [_("%s µs") % number_format.number(variant.us_per_op) for variant in shown],
    }


def _without_clients(variant: VariantResult) -> list[str]:
    """The chart's title says how many there are."""
    return variant_lines(replace(variant.identity, clients=1))


def _present(parts: Sequence[dict[str, float | None]]) -> list[str]:
    """The parts that take any time anywhere; waiting and what is not seen take each other's place."""
    return [part for part in PARTS if any(own[part] for own in parts)]


def _part(own: dict[str, float | None], part: str) -> Cell:
    """Of waiting and what is not seen, one is not unknown but not there."""
    other = {"waiting": "unseen", "unseen": "waiting"}.get(part)
    if other and own[part] is None and own[other] is not None:
        return words("–")
    return number(own[part])


def _shares(shown: Sequence[tuple[VariantResult, Account]], title: str) -> Table:
    names = role_names()
    shares = [account["share"] for _row, account in shown]
    roles = [role for role in result_keys.SHARE if any(share.get(role) is not None for share in shares)]
    rows = [
        (words(variant_title(row)), *(percent(account["share"].get(role)) for role in roles))
        for row, account in shown
    ]
    caption = _share_caption(title, [account for _row, account in shown], roles)
    return Table(
        caption, (text_column(_("Variant")), *(Column(names[role]) for role in roles)), rows, "shares"
    )


def _share_caption(title: str, accounts: Sequence[Account], roles: Sequence[str]) -> str:
    cpus = ", ".join(dict.fromkeys(str(account.get("cpus") or _("unknown")) for account in accounts))
    sources = ", ".join(dict.fromkeys(str(account.get("source") or _("agent")) for account in accounts))
    about = {"title": title, "cpus": cpus, "sources": sources}
    return lacking(_("%(title)s (%(cpus)s); read from: %(sources)s") % about, result_keys.SHARE, roles)


def _queue_columns() -> dict[tuple[str, str], str]:
    """(part of the books, key) -> title."""
    names = role_names()
    kinds = {"voluntary": _("%s switched by waiting"), "involuntary": _("%s switched by force")}
    return {
        **{("wait_us_per_op", role): _("%s in the run queue, µs") % names[role] for role in result_keys.WAIT},
        **{
            ("switches_per_op", f"{role}_{kind}"): text % names[role]
            for role in result_keys.WAIT
            for kind, text in kinds.items()
        },
        **{("system_share", role): _("%s in the kernel") % names[role] for role in result_keys.WAIT},
        **{("busiest", role): _("busiest %s") % names[role] for role in result_keys.WAIT},
    }


def _nested(row: VariantResult, key: tuple[str, str]) -> float | None:
    value: Any = (row.cpu_account.get(key[0]) or {}).get(key[1])
    return value


def _known_sum(cpu_us: dict[str, float | None]) -> float | None:
    known = [value for role in result_keys.SERVING if (value := cpu_us.get(role)) is not None]
    return sum(known) if known else None
