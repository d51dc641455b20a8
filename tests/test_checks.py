"""Each system check: silent when all is well, with an id and a hint when not."""

from pathlib import Path
from typing import Any

import pytest
from django.core.checks import CheckMessage, run_checks

from pgperf import checks
from pgperf.layers import C_CLIENT


@pytest.fixture
def built(tmp_path: Path, settings: Any) -> Path:
    """Settings under which no check has anything to say."""
    client = tmp_path / C_CLIENT
    client.write_text("#!/bin/sh\n")
    client.chmod(0o755)
    settings.PGPERF = {"BUILD_DIR": tmp_path}
    return client


def messages() -> list[CheckMessage]:
    return run_checks(tags=[checks.TAG])


def only() -> CheckMessage:
    (message,) = messages()
    assert message.hint
    return message


def test_all_is_well(built: Path) -> None:
    assert messages() == []


@pytest.mark.parametrize("wrong", [{"QUEUES": "x"}, {"MAX_CLIENTS": "64"}, {"PIN_SERVER": 1}])
def test_settings(settings: Any, wrong: dict[str, Any]) -> None:
    settings.PGPERF = wrong
    assert only().id == "pgperf.E001"
    assert next(iter(wrong)) in only().msg


def test_import_export(built: Path, settings: Any) -> None:
    settings.INSTALLED_APPS = [app for app in settings.INSTALLED_APPS if app != "import_export"]
    assert only().id == "pgperf.E002"


def test_secrets_directory(built: Path, settings: Any) -> None:
    settings.PGPERF = {**settings.PGPERF, "SECRETS_DIR": str(built)}
    assert only().id == "pgperf.E003"


def test_c_client(built: Path) -> None:
    built.unlink()
    assert only().id == "pgperf.W001"


def test_drivers(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks.importlib.util, "find_spec", lambda name: None)
    assert only().id == "pgperf.W002"


def test_broker(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks.current_app.conf, "broker_url", None)
    assert only().id == "pgperf.W003"
