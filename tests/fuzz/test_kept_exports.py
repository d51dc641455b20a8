"""`manage.py pgperf compare --baseline FILE` with files that somebody changed: an answer or one clear
line, and a documented exit code.
"""

import copy
import io
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from hypothesis import strategies as st

from pgperf.cli.compare import Judgement
from tests import kept_rows
from tests.factories import make_results, make_run
from tests.fuzz.cases import fuzzed
from tests.fuzz.hostile import JSON_VALUES, pick

FORMS: tuple[tuple[str, ...], ...] = (
    (),
    ("--json",),
    ("--format", "md"),
    ("--format", "html"),
    ("--relative",),
    ("--fail-on", "5%"),
    ("--json", "--fail-on", "0%"),
    ("--relative", "--fail-on", "5%"),
)
PARTS = ("run", "levels", "variants", "ladders")


def deep(levels: int) -> Any:
    return {"a": [deep(levels - 1)]} if levels else 1


ODD = st.sampled_from(
    [700, -700, 35, 34.9, 70, 0, 1, -1, 1e-9, 5e-324, 1e15, 1e300, 10**30, 10**400, 2**63, math.inf, math.nan, "700",
     "nan", "\ud800", "a\0b", "\x1b[2J", "x" * 5_000, "0001-01-01T00:00:00+00:00", "9999-12-31T23:59:59", "django_orm",
     None, True, [], {}, [[]], [[1.0, 2.0]], deep(100)]
)  # fmt: skip
#: The part of the export, a place in it, what happens there, and a value for it.
CHANGES = st.lists(
    st.tuples(
        st.sampled_from(PARTS),
        st.integers(0, 10**6),
        st.sampled_from(["replace", "replace", "replace", "delete", "wrap", "double", "add"]),
        ODD | JSON_VALUES,
    ),
    min_size=1,
    max_size=3,
)


def places(container: Any) -> Iterator[tuple[Any, Any]]:
    """Each value inside, as the list or object that holds it and its key."""
    for key in container if isinstance(container, dict) else range(len(container)):
        yield container, key
        if isinstance(container[key], dict | list):
            yield from places(container[key])


def change(data: dict[str, Any], part: str, place: int, how: str, value: Any) -> None:
    if part not in data:
        return
    value = copy.deepcopy(value)  # which later changes may alter, or put into itself
    holder, key = pick(place, [(data, part), *places({part: data[part]})][:20_000])
    if how == "delete":
        del holder[key]
    elif how == "add" and isinstance(holder, list):
        holder.append(value)
    elif how == "add":
        holder["odd"] = value
    else:
        old = holder[key]
        holder[key] = {"replace": value, "wrap": [old], "double": [old, copy.deepcopy(old)]}[how]


@pytest.fixture(scope="module")
def kept(django_db_setup: None, django_db_blocker: Any) -> Iterator[tuple[str, int]]:
    """The kept export of a run, and the number of a later run."""
    with kept_rows.kept(django_db_blocker):
        earlier, later = (make_results(make_run()) for _ in range(2))
        out = io.StringIO()
        call_command("pgperf", "export", str(earlier.pk), "--format", "json", stdout=out)
        yield out.getvalue(), later.pk


def constant(name: str) -> Any:
    raise AssertionError(f"{name} is no JSON")


@fuzzed("command line", 40, changes=CHANGES, form=st.sampled_from(FORMS))
def test_a_changed_export_gives_an_answer_or_a_clear_error(
    kept: tuple[str, int], db: None, tmp_path: Path, changes: list[Any], form: tuple[str, ...]
) -> None:
    text, later = kept
    data = json.loads(text)
    for each in changes:
        change(data, *each)
    path = tmp_path / "baseline.json"
    path.write_text(json.dumps(data))
    out = io.StringIO()
    try:
        call_command("pgperf", "compare", str(later), "--baseline", str(path), *form, stdout=out)
    except CommandError as error:
        check_error(error, "--fail-on" in form)
    out.getvalue().encode()
    if "--json" in form and out.getvalue():
        json.loads(out.getvalue(), parse_constant=constant)


def check_error(error: CommandError, judged: bool) -> None:
    """Its exit code, and that a person can read it."""
    if isinstance(error, Judgement):
        assert judged
        assert error.returncode in (1, 3)
        return
    assert error.returncode == (4 if judged else 1)
    assert len(str(error)) < 1_000
    assert not any(ord(sign) < 32 or 127 <= ord(sign) < 160 for sign in str(error))
