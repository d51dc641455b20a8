"""A kept JSON export of a run, as a baseline. Anybody may have changed the file, so each field is
checked before anything is calculated from it.

Every function raises ValueError, which names the field.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, fields
from datetime import datetime
from typing import Any

from pgperf.analysis.grade import Disturbance, Grade, GradeWord, Source
from pgperf.analysis.ladder import Ladder, Step
from pgperf.analysis.level_fields import LONGEST_US, is_number, is_whole, words
from pgperf.analysis.run_comparison import Level
from pgperf.models import Run

#: An export needs about ten levels.
_MOST_NESTED = 50
#: Disturbances that the host makes itself, whose share tells the time of an operation.
_OF_THE_HOST = (Source.THROTTLING, Source.CLOCK)
#: The largest id of a run in any database.
_LARGEST_ID = 2**63 - 1
#: Local time is known of these years in every zone.
_YEARS = range(1970, 9999)


def check(data: Any) -> None:
    """What no field of an export has: numbers that are not finite, text that is no Unicode, and deep
    nesting.
    """
    parts = [("the file", data, 0)]
    while parts:
        name, value, depth = parts.pop()
        if depth > _MOST_NESTED:
            raise ValueError(f"{name[:60]} is nested too deeply")
        if isinstance(value, str):
            _check_unicode(name, value)
        elif isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"{name} is {value}")
        inside = [(inner, each, depth + 1) for inner, each in _inside(name if depth else "", value)]
        parts += reversed(inside)  # the first one in the file is named


def run(data: Any) -> Run:
    """The run, which is not stored."""
    found = _object("run", _of(_object("the file", data), "run"))
    started, finished = (_moment(f"run.{name}", _of(found, name, "run.")) for name in ("started", "finished"))
    return Run(
        pk=_id(_of(found, "id", "run.")),
        status=_status(_text(found, "status")),
        benchmark_name=_text(found, "benchmark"),
        database_name=_text(found, "database"),
        quick=_truth(found, "quick"),
        definition=dict(_object("run.definition", _of(found, "definition", "run."))),
        definition_hash=_text(found, "definition_hash"),
        environment=dict(_object("run.environment", _of(found, "environment", "run."))),
        summary={"partial": _truth(found, "partial")},
        started_at=started,
        finished_at=finished,
    )


def levels(data: Mapping[str, Any]) -> list[Level]:
    """One value per block and variant."""
    found = []
    for name, each in _rows(data, "levels"):
        try:
            found.append(Level.from_json(each))
        except KeyError as error:
            raise ValueError(f"{name} has no {error}") from None
        except ValueError as error:
            raise ValueError(f"{name}.{error}") from None
    return found


def ladders(data: Mapping[str, Any]) -> list[Ladder]:
    """What stands on what, with the steps that are shown."""
    return [_ladder(name, each) for name, each in _rows(data, "ladders")]


def _ladder(name: str, stored: Mapping[str, Any]) -> Ladder:
    rungs = [row for part in ("steps", "side") for row in _rows(stored, part, f"{name}.")]
    for place, rung in rungs:
        _check_fields(place, rung, fields(Step))
    _check_fields(name, stored, [each for each in fields(Ladder) if each.name not in ("steps", "side")])
    return Ladder.from_json(stored)


def _check_fields(name: str, stored: Mapping[str, Any], known: Sequence[Field[Any]]) -> None:
    """Raises ValueError for a field that is missing, or of another type than the record's."""
    for each in known:
        if each.name in stored:
            _check_field(f"{name}.{each.name}", stored[each.name], str(each.type))
        elif each.default is MISSING:
            raise ValueError(f"{name}.{each.name} is missing")
    wanted = {each.name for each in known} | {"steps", "side"}
    if others := sorted(stored.keys() - wanted):
        raise ValueError(f"{name} has {others[0]}, which no export has")


def _check_field(name: str, value: Any, kind: str) -> None:
    if value is None and "None" in kind:
        return
    if "str" in kind:
        words(name, value)
    elif not (is_number(value) and abs(value) <= LONGEST_US):
        raise ValueError(f"{name} is not a number of an export")


def others_shares(data: Mapping[str, Any]) -> dict[str, float | None]:
    """The most that others took of the time of each much disturbed variant, by label; the grades are
    in the verdicts.
    """
    found = {}
    for name, each in _rows(data, "variants"):
        verdict = _object(f"{name}.verdict", each.get("verdict") or {})
        grade = _object(f"{name}.verdict.grade", verdict.get("grade") or {})
        if grade.get("word") == GradeWord.POOR:
            label = _of(each, "label", f"{name}.")
            if not isinstance(label, str):
                raise ValueError(f"{name}.label is not text")
            found[label] = _grade(f"{name}.verdict.grade", grade).others
    return found


def _grade(name: str, stored: Mapping[str, Any]) -> Grade:
    share = _share(f"{name}.share", stored.get("share"))
    disturbances = _of(stored, "disturbances", f"{name}.")
    if not isinstance(disturbances, list):
        raise ValueError(f"{name}.disturbances is not a list")
    several = (_disturbance(f"{name}.disturbances[{at}]", each) for at, each in enumerate(disturbances))
    return Grade(GradeWord.POOR, share, tuple(several))


def _disturbance(name: str, stored: Any) -> Disturbance:
    """Without what a comparison does not use."""
    found = _object(name, stored)
    us, source = found.get("us"), found.get("source")
    if us is not None and not (is_number(us) and 0 <= us <= LONGEST_US):
        raise ValueError(f"{name}.us is not a time in µs")
    if not isinstance(source, str):
        raise ValueError(f"{name}.source is not text")
    share = _share(f"{name}.share", found.get("share")) if source in _OF_THE_HOST else None
    return Disturbance(source, "", None if us is None else float(us), share)


def _share(name: str, stored: Any) -> float | None:
    if stored is not None and not (is_number(stored) and 0 <= stored <= 1):
        raise ValueError(f"{name} is not a share from 0 to 1")
    return None if stored is None else float(stored)


def _rows(data: Mapping[str, Any], name: str, before: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The objects of a list, each with its place."""
    stored, place = _of(data, name, before), f"{before}{name}"
    if not isinstance(stored, list):
        raise ValueError(f"{place} is not a list")
    for at, each in enumerate(stored):
        yield f"{place}[{at}]", _object(f"{place}[{at}]", each)


def _inside(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, list):
        yield from ((f"{name}[{at}]", each) for at, each in enumerate(value))
    elif isinstance(value, dict):
        for key, each in value.items():
            _check_unicode(name or "the file", key)
            yield (f"{name}.{key}" if name else key), each


def _check_unicode(name: str, text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{name} has text that is not Unicode") from None


def _of(data: Mapping[str, Any], name: str, before: str = "") -> Any:
    if name not in data:
        raise ValueError(f"{before}{name} is missing")
    return data[name]


def _object(name: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{name} is not an object")
    return value


def _text(found: Mapping[str, Any], name: str) -> str:
    return words(f"run.{name}", _of(found, name, "run."))


def _truth(found: Mapping[str, Any], name: str) -> bool:
    value = _of(found, name, "run.")
    if not isinstance(value, bool):
        raise ValueError(f"run.{name} is neither true nor false")
    return value


def _id(value: Any) -> int:
    if not (is_whole(value) and 0 < value <= _LARGEST_ID):
        raise ValueError("run.id is not the number of a run")
    return int(value)


def _status(text: str) -> Run.Status:
    if text not in Run.Status.values:
        raise ValueError("run.status is not a state of a run")
    return Run.Status(text)


def _moment(name: str, text: Any) -> datetime | None:
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        raise ValueError(f"{name} is not a date and time") from None
    if found.year not in _YEARS:
        raise ValueError(f"{name} is not a time of a run")
    return found
