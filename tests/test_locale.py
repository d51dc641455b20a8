"""The translations: what the program reads is what the translators wrote, and takes the same values."""

import gettext
import re
from pathlib import Path

import pytest
from django.utils import translation

import pgperf

FOLDERS = sorted((Path(pgperf.__file__).parent / "locale").glob("*/LC_MESSAGES"))
PLACE = re.compile(r"%\(\w+\)[sd]|%[sd]|</?a\b")


@pytest.fixture(params=FOLDERS, ids=lambda folder: folder.parent.name)
def catalog(request: pytest.FixtureRequest) -> dict[str, str]:
    with (request.param / "django.mo").open("rb") as file:
        found: dict[str, str] = gettext.GNUTranslations(file)._catalog  # type: ignore[attr-defined]
    return {key if isinstance(key, str) else key[0]: text for key, text in found.items() if key}


def test_a_translation_takes_what_the_original_takes(catalog: dict[str, str]) -> None:
    wrong = {
        key: text
        for key, text in catalog.items()
        if sorted(PLACE.findall(key)) != sorted(PLACE.findall(text))
    }
    assert wrong == {}


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.parent.name)
def test_what_is_compiled_is_what_is_written(folder: Path, catalog: dict[str, str]) -> None:
    """Every short one; long texts are broken over lines."""
    written = re.findall(r'(?m)^msgid "(.+)"\nmsgstr "(.+)"$', (folder / "django.po").read_text())
    assert len(written) > 100
    assert [key for key, text in written if catalog.get(_plain(key)) != _plain(text)] == []


def _plain(text: str) -> str:
    return text.replace('\\"', '"').replace("\\n", "\n")


def test_pages_speak_it() -> None:
    with translation.override("de"):
        assert translation.gettext("Run benchmark") == "Benchmark starten"
