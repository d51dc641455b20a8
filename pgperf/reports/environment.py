"""What was measured on, and where the run's own time went, as tables."""

import re
from collections.abc import Iterator
from typing import Any

from django.utils.text import capfirst
from django.utils.translation import gettext as _

from pgperf.core.records import CAPTURES, ENDING, PAGE_PARTS, PREDICTED, STATEMENT_TIMES
from pgperf.reports.fact_names import fact_parts, fact_text
from pgperf.reports.table import Cell, Column, Table, number, percent, text_column, words

#: Keys of the environment that have tables of their own, or the sentence on the run's end.
_SHOWN_ELSEWHERE = (CAPTURES, STATEMENT_TIMES, PAGE_PARTS, ENDING, PREDICTED)
#: Keys whose values name the database roles of the run: what each may do, and those that can write.
_ACCESS, _CAN_WRITE = "access", "can_write"
#: Keys whose texts name Celery workers: that of the agent, and those of load hosts.
_WITH_WORKERS = ("server_host", "load_hosts")
_WORKER = re.compile(r"[^\s@]+@[^\s@,;:]+")
#: What follows the role in a text on access.
_MAY = re.compile(r"(?:cannot write|this role can write|inserts rows into)\b.*", re.DOTALL)
_POWERS = re.compile(r" \(.*\)", re.DOTALL)


def timings_table(timings: dict[str, float]) -> Table:
    """Where the run's wall time went, with the rest that no part names."""
    names = {
        "slices_s": _("slices (lead-ins and windows)"),
        "diagnostics_s": _("diagnostic slices"),
        "warm_up_s": _("warm-up"),
        "pilot_s": _("pilot"),
        "startup_s": _("starting processes and connecting"),
        "rest_s": _("the rest: checks, and the time between slices"),
        "wall_s": _("whole run"),
    }
    wall = timings.get("wall_s")
    known = {key: timings[key] for key in names if timings.get(key) is not None}
    if wall:
        known["rest_s"] = max(0.0, wall - sum(known[key] for key in known if key != "wall_s"))
    rows = [
        (words(name), number(known[key]), percent(known[key] / wall) if wall else Cell(""))
        for key, name in names.items()
        if key in known
    ]
    columns = text_column(_("Part")), Column(_("Seconds")), Column(_("Share"))
    return Table(_("Where the run's own time went"), columns, rows, "timings")


def environment_tables(environment: dict[str, Any]) -> list[Table]:
    """What was measured on: one table per part."""
    shown = {key: value for key, value in environment.items() if key not in _SHOWN_ELSEWHERE}
    parts: dict[str, list[tuple[Cell, ...]]] = {_("General"): []}
    for path, text in _flat(shown):
        part, name = _part_and_name(path)
        parts.setdefault(part, []).append((words(name), words(text)))
    columns = text_column(_("What")), text_column(_("Value"))
    return [Table(title, columns, rows, "environment") for title, rows in parts.items() if rows]


def nameless(environment: dict[str, Any]) -> dict[str, Any]:
    """The same without the names of database roles and of workers, for a file that is sent."""
    found = dict(environment) | {
        key: _without_workers(environment[key]) for key in _WITH_WORKERS if key in environment
    }
    if _CAN_WRITE in found:
        found[_CAN_WRITE] = bool(found[_CAN_WRITE])
    access = found.pop(_ACCESS, None)
    if isinstance(access, dict):  # an imported run may have anything
        found[_ACCESS] = {route: _may(text) for route, text in access.items()}
    return found


def names_a_role(name: str) -> bool:
    """Has the fact of this dotted name a database role in it?"""
    return name.partition(".")[0] in (_ACCESS, _CAN_WRITE)


def _without_workers(stored: Any) -> Any:
    if isinstance(stored, dict):
        return {key: _without_workers(value) for key, value in stored.items()}
    if isinstance(stored, list):
        return list(map(_without_workers, stored))
    return _WORKER.sub("…", stored) if isinstance(stored, str) else stored


def _may(text: Any) -> str | None:
    """Without the powers too: one of them names a superuser."""
    said = _MAY.search(str(text))
    return _POWERS.sub("", said[0]) if said else None


def environment_line(environment: dict[str, Any]) -> str:
    """Versions and CPUs in one line, without what is unknown."""
    packages, machine, server = (environment.get(key) or {} for key in ("packages", "machine", "server"))
    pooler = environment.get("pooler") or {}
    facts = (
        ("pgperf", environment.get("pgperf")),
        ("Python", environment.get("python")),
        *((name, packages.get(name)) for name in ("Django", "psycopg", "psycopg2")),
        ("PostgreSQL", server.get("server_version")),
        ("", pooler.get("version") or pooler.get("name")),
        ("kernel", machine.get("kernel")),
        ("CPUs:", machine.get("processors")),
        ("", machine.get("processor")),
    )
    return " · ".join(f"{name} {value}".strip() for name, value in facts if value)


def _part_and_name(path: str) -> tuple[str, str]:
    first, *names = fact_parts(path)
    return (capfirst(first), " · ".join(names)) if names else (_("General"), first)


def _flat(part: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """The path of each fact and its value, as text."""
    for key, value in part.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", fact_text(key, _plain(value))


def _plain(value: Any) -> str:
    if value is None:
        return _("not known")
    if isinstance(value, float):
        return str(round(value, 4))
    if isinstance(value, list):
        return ", ".join(map(_plain, value)) or _("none")
    return str(value).strip() or "–"
