"""Damaged files of definitions: imported completely or refused completely."""

import json
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.core.files.uploadedfile import SimpleUploadedFile
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse
from hypothesis import strategies as st

from pgperf.models import Benchmark, Database, Target, Workload
from pgperf.transfer.files import FORMATS
from tests.fuzz.browser import ANSWERS
from tests.fuzz.cases import fuzzed
from tests.fuzz.hostile import JSON_VALUES, VALUES, spliced
from tests.transfer.bulky import FILES

Undone = Callable[[], AbstractContextManager[None]]
MODELS = {"benchmark": Benchmark, "database": Database, "workload": Workload}
BITS = st.binary(max_size=6) | st.sampled_from(
    [
        b"\xef\xbb\xbf",
        b"\xff\xfe",
        b"=1+1",
        b'"',
        b",",
        b"\n",
        b"[" * 3000,
        b"\x00",
        b"{}",
        b"!!python/object:os.system x",
        b"&a [*a]",
    ]
)
CELLS = (
    JSON_VALUES
    | VALUES
    | st.sampled_from(["=1+1", ["socket"], [1, 8], {"route": "x"}, 10**400, 1e308, "alias:default"])
)


@dataclass(frozen=True)
class CostlyFile:
    """A file made before its import is measured: some take more memory to make than to refuse."""

    name: str
    path: str
    content: bytes = field(repr=False)

    @classmethod
    def make(cls, file: tuple[str, str]) -> "CostlyFile":
        kind, name = file
        made = FILES[kind][name]()
        return cls(name, f"x.{kind}", made if isinstance(made, bytes) else made.encode())


@pytest.fixture(scope="module")
def files(superuser: Client) -> dict[tuple[str, str], bytes]:
    """The export of each model in each format."""
    return {
        (model, kind): superuser.post(reverse(f"admin:pgperf_{model}_export"), {"format": kind}).content
        for model in MODELS
        for kind in FORMATS
    }


def rows() -> list[Any]:
    return [
        list(model._default_manager.order_by("pk").values())
        for model in (Benchmark, Database, Target, Workload)
    ]


def _file_name(text: str) -> str:
    """The text as far as Django's test client can make a name of it."""
    name = text.replace("\0", "")[:300]
    return "x" if os.path.basename(name) in ("", ".", "..") else name


def bring(site: Client, model: str, name: str, content: bytes) -> HttpResponse:
    """Imports a file.

    A refused file changes nothing; after an accepted file, all pages still work.
    """
    page = reverse(f"admin:pgperf_{model}_import")
    before, entries = rows(), LogEntry.objects.count()
    answer = site.post(page, {"import_file": SimpleUploadedFile(name, content)})
    assert answer.status_code in ANSWERS
    if answer.status_code == 302:
        assert site.get(reverse(f"admin:pgperf_{model}_changelist")).status_code == 200
        assert site.post(reverse(f"admin:pgperf_{model}_export"), {"format": "json"}).status_code == 200
    else:
        assert rows() == before
        assert LogEntry.objects.count() == entries
    return answer


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("model", MODELS)
def test_an_export_imports_unchanged(
    site: Client, files: dict[tuple[str, str], bytes], model: str, kind: str
) -> None:
    before = rows()
    assert bring(site, model, f"x.{kind}", files[model, kind]).status_code == 302
    assert rows() == before


@fuzzed(
    "imports", 3, model=st.sampled_from(list(MODELS)), kind=st.sampled_from(list(FORMATS)), at=st.integers(0, 10**6),
    bit=BITS, dropped=st.sampled_from([0, 0, 1, 8, 10**6]),
)  # fmt: skip
def test_a_spliced_file_is_all_or_nothing(
    site: Client, undone: Undone, files: dict[tuple[str, str], bytes], model: str, kind: str, at: int, bit: bytes,
    dropped: int,
) -> None:  # fmt: skip
    with undone():
        bring(site, model, f"x.{kind}", spliced(files[model, kind], at, bit, dropped))


@fuzzed(
    "imports", 3, model=st.sampled_from(list(MODELS)), column=st.integers(0, 30) | VALUES, cell=CELLS,
    more=st.lists(JSON_VALUES, max_size=2), name=st.sampled_from(["", "fresh", "demo"]),
)  # fmt: skip
def test_a_cell_of_the_wrong_kind_is_all_or_nothing(
    site: Client, undone: Undone, files: dict[tuple[str, str], bytes], model: str, column: int | str, cell: Any,
    more: list[Any], name: str,
) -> None:  # fmt: skip
    """One cell of the first row is replaced."""
    found = json.loads(files[model, "json"])
    row = found[0]
    key = list(row)[column % len(row)] if isinstance(column, int) else column
    row |= {"name": name} if name else {}
    row[key] = cell
    with undone():
        bring(site, model, "x.json", json.dumps([*found, *more]).encode())


@fuzzed(
    "imports", 1, model=st.sampled_from(list(MODELS)),
    file=st.sampled_from([(kind, name) for kind, made in FILES.items() for name in made]).map(CostlyFile.make),
)  # fmt: skip
def test_a_costly_file_is_all_or_nothing(site: Client, undone: Undone, model: str, file: CostlyFile) -> None:
    with undone():
        bring(site, model, file.path, file.content)


@fuzzed(
    "imports", 1, model=st.sampled_from(list(MODELS)), name=VALUES, content=st.binary(max_size=300) | BITS
)
def test_an_unreadable_file_is_refused(
    site: Client, undone: Undone, model: str, name: str, content: bytes
) -> None:
    with undone():
        bring(site, model, _file_name(name), content)


@fuzzed(
    "exports",
    1,
    model=st.sampled_from(list(MODELS)),
    kind=st.sampled_from(list(FORMATS)) | VALUES,
    chosen=VALUES,
)
def test_an_invalid_export_request_is_refused(
    site: Client, undone: Undone, model: str, kind: str, chosen: str
) -> None:
    with undone():
        answer = site.post(reverse(f"admin:pgperf_{model}_export"), {"format": kind, "chosen": chosen})
        assert answer.status_code in ANSWERS
