"""In what two runs differ besides their figures: definition and environment, flattened to dotted
names. Pure.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from pgperf.core.records import ANSWER, ENDING, PAGE_PARTS, PREDICTED, REPLICATES, STATEMENT_TIMES

#: What differs from run to run by nature.
_VOLATILE = (
    "seed", "ports", "machine.load_average", "memory.free_bytes", "memory.allowed_bytes", "memory.client_bytes",
    "load.at_start", "server_host.clock_error_us", "server_host.agent_cpu_percent", "load_hosts.clocks",
    "load_hosts.start_skew_us", "load_hosts.repeated", "written.rounds_with_checkpoint", ENDING, PREDICTED,
    STATEMENT_TIMES, PAGE_PARTS, REPLICATES,
)  # fmt: skip
#: What a page answered: runs before it was noted have none, and others note it by workload or not.
_PAGE_ANSWER = re.compile(rf"(.+\.)?layers\.[^.]+\.{ANSWER}( of .+)?", re.DOTALL)
#: The user's own values, texts that may hold them, and names of the site's users: that they differ is
#: said, what they are is not.
_UNSAID = re.compile(
    r"workloads\.\d+\.(sql|args|other_sql|other_args|query\.lookup|page\.path|page\.user)(\.|$)"
)
#: A part that only one of the two has is one difference, with all that is in it.
_WHOLE = re.compile(r"layers\.[^.]+")
_LONGEST = 120
#: A setting that only those runs stored that stored all that are not defaults.
_MARK = "max_wal_size"
#: The key of an environment for the settings of the server, which have differences of their own.
SERVER = "server"
_NOT_SHOWN = "(not shown)"


class Difference(NamedTuple):
    """`before` and `after` are shortened texts; "" for what a run does not have."""

    what: str
    before: str
    after: str


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Difference]:
    """Everything that is in one and not, or not alike, in the other, in the order of the second."""
    earlier, later = (
        _gathered(own, _wholes(own) - _wholes(other)) for own, other in ((before, after), (after, before))
    )
    names = [name for name in {**later, **earlier} if not _under(name, _VOLATILE)]
    return [
        _difference(name, earlier.get(name), later.get(name))
        for name in names
        if earlier.get(name) != later.get(name) and not _is_lone_answer(name, earlier, later)
    ]


def _is_lone_answer(name: str, *both: Mapping[str, Any]) -> bool:
    """What a page answered, noted by one of the two only."""
    return bool(_PAGE_ANSWER.fullmatch(name)) and not all(name in each for each in both)


def environment_differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Difference]:
    """Of two runs' environments, without the settings of their servers."""
    earlier, later = (
        {key: value for key, value in each.items() if key != SERVER} for each in (before, after)
    )
    return differences(earlier, later)


def setting_differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Difference]:
    """The settings of the two servers that differ, by name; "" is PostgreSQL's default.

    A run stores all settings that are not defaults, but older runs stored some settings only. What
    such a run lacks is unknown, and no difference.
    """
    both = [name for name in {**after, **before} if _is_known(before, name) and _is_known(after, name)]
    return [
        Difference(name, _text(before.get(name)), _text(after.get(name)))
        for name in both
        if before.get(name) != after.get(name)
    ]


def under_server(settings: Iterable[Difference]) -> list[Difference]:
    """The differences of settings with the names that these have in an environment."""
    return [each._replace(what=f"{SERVER}.{each.what}") for each in settings]


def server_settings(environment: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of the server by name, as SHOW prints them; none if the run stored none."""
    found = environment.get(SERVER)
    return found if isinstance(found, dict) else {}


def fact(part: Mapping[str, Any], what: str) -> str:
    """What a definition or an environment has under the name of a difference, as that tells it."""
    flat = _gathered(part, [what] if _WHOLE.fullmatch(what) else [])
    return _told(what, flat.get(what))


def setting(settings: Mapping[str, Any], name: str) -> str | None:
    """The setting, as a difference tells it; None: unknown."""
    return _text(settings.get(name)) if _is_known(settings, name) else None


def _is_known(settings: Mapping[str, Any], name: str) -> bool:
    """Is it stored, or surely PostgreSQL's default?"""
    return name in settings or _MARK in settings


def _difference(name: str, before: Any, after: Any) -> Difference:
    return Difference(name, _told(name, before), _told(name, after))


def _told(name: str, value: Any) -> str:
    return _NOT_SHOWN if _UNSAID.match(name) else _text(value)


def _wholes(part: Mapping[str, Any]) -> set[str]:
    return {found[0] for name, _value in _flat(part) if (found := _WHOLE.match(name))}


def _gathered(part: Mapping[str, Any], wholes: Iterable[str]) -> dict[str, Any]:
    """Flattened; what is in one of `wholes` is one list."""
    flat = dict(_flat(part))
    for whole in wholes:
        inside = [name for name in flat if _under(name, [whole])]
        facts = [f"{name.removeprefix(whole + '.')} {_text(flat.pop(name))}" for name in inside]
        flat[whole] = facts
    return flat


def _flat(part: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in part.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        elif _is_rows(value):
            yield from _flat({str(at): row for at, row in enumerate(value, 1)}, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", list(value) if isinstance(value, tuple) else value


def _is_rows(value: Any) -> bool:
    return isinstance(value, list | tuple) and bool(value) and all(isinstance(row, Mapping) for row in value)


def _under(name: str, prefixes: Iterable[str]) -> bool:
    return any(name == prefix or name.startswith(f"{prefix}.") for prefix in prefixes)


def _text(value: Any) -> str:
    if value is None:
        return ""
    text = ", ".join(_text(item) or "–" for item in value) if isinstance(value, list) else str(value).strip()
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
