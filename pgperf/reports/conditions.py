"""The conditions of a run that its definition names: connections, workers, rows, transactions."""

from collections.abc import Iterator, Mapping
from typing import Any, cast

from django.db.models import Field
from django.utils.text import capfirst
from django.utils.translation import gettext as _

from pgperf.core.records import LATER_FIELDS, with_workloads
from pgperf.models import Benchmark
from pgperf.reports.table import Table, text_column, words

_SHOWN = (
    "modes", "clients", "workers", "connection_modes", "environments", "rates", "schedule", "latency_limit_ms",
    "rate_search_ms", "load_hosts", "load_host_names", "may_lose_hosts", "row_type", "transaction", "bulk_api",
    "placement", "idle",
)  # fmt: skip


def _hidden(known: Mapping[str, Any]) -> Iterator[str]:
    """Fields that say nothing about this run: of bulk inserts, open loops, searches and load hosts."""
    if not any(work.get("bulk") for work in with_workloads(known)["workloads"]):
        yield "bulk_api"
    if not known["rate_search_ms"]:
        yield "rate_search_ms"
    if not any(known["load_hosts"]):
        yield from ("load_host_names", "may_lose_hosts")
    if not any(rate is not None for rate in known["rates"]):
        yield "latency_limit_ms"
        yield from () if known["rate_search_ms"] else ("schedule",)


def conditions_table(definition: Mapping[str, Any]) -> Table:
    """Each condition as the benchmark's form names it; without the bulk API where no workload
    inserts rows.
    """
    known = {**LATER_FIELDS, **definition}
    hidden = set(_hidden(known))
    names = [name for name in _SHOWN if name in known and name not in hidden]
    rows = [(words(_title(name)), words(_value(name, known[name]))) for name in names]
    return Table(_("Conditions"), (text_column(_("What")), text_column(_("Value"))), rows, "environment")


def _title(name: str) -> str:
    return str(capfirst(_field(name).verbose_name))


def _field(name: str) -> "Field[Any, Any]":
    return cast("Field[Any, Any]", Benchmark._meta.get_field(name))


def _item(value: Any) -> str:
    """One of a list; a rate of None is a closed loop."""
    return _("closed loop") if value is None else str(value).replace("_", " ")


def _value(name: str, value: Any) -> str:
    """The choice as the form shows it; a list without brackets."""
    if isinstance(value, list | tuple):
        return ", ".join(_item(each) for each in value) or _("any")
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    choices = dict(_field(name).flatchoices)
    return str(choices.get(value, value))
