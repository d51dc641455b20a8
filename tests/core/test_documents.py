"""Hints name documents that a reader can open."""

from pathlib import Path

import pytest

from pgperf.core import documents
from tests.installation.environments import ROOT


def test_a_checkout_has_its_own() -> None:
    assert documents.document("reference.md") == str(ROOT / "docs" / "reference.md")


def test_an_installed_package_has_its_own_before_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "site-packages" / "pgperf"
    for folder in (package, package.parent):
        (folder / "docs").mkdir(parents=True)
        (folder / "docs" / "reference.md").write_text("")
    monkeypatch.setattr(documents, "_PACKAGE", package)
    assert documents.document("reference.md") == str(package / "docs" / "reference.md")


def test_without_any_the_name_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "_PACKAGE", tmp_path / "pgperf")
    assert documents.document("reference.md") == "docs/reference.md"
