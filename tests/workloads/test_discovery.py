"""Loading `pgperf_workloads.py` of the installed apps."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.core.management import call_command
from django.db import connection
from django.test import override_settings

from pgperf import checks, registry
from pgperf.reports import listing
from pgperf.workloads import discovery

Install = Callable[[str], None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Puts an app whose pgperf_workloads.py has that text in front of the example's own; nothing
    was discovered yet.
    """
    monkeypatch.syspath_prepend(tmp_path)
    discovery.discover.cache_clear()
    monkeypatch.setattr(registry, "WORKLOADS", dict(registry.WORKLOADS))
    app = f"app_{tmp_path.name}".replace("-", "_").lower()

    def make(text: str) -> None:
        (tmp_path / app).mkdir()
        (tmp_path / app / "__init__.py").touch()
        (tmp_path / app / "pgperf_workloads.py").write_text(text)
        overridden.enable()

    overridden = override_settings(INSTALLED_APPS=[app, "example.books", "pgperf"])
    yield make
    overridden.disable()
    discovery.discover.cache_clear()
    for name in [name for name in sys.modules if name.startswith(app)]:
        del sys.modules[name]


def test_the_sites_own_are_found_and_pgperfs_are_left_out() -> None:
    assert discovery.discover() == []
    assert {"books.by_isbn", "books.page", "books.authors_one_by_one"} <= set(discovery.names())
    assert not any(name.startswith("pgperf.") for name in discovery.names())


def test_a_failure_shows_no_password_of_the_site(install: Install) -> None:
    """A module may connect as it is imported; users who define workloads read why it failed."""
    secret = connection.settings_dict["PASSWORD"]
    install(f"raise OSError('no server at postgresql://app:{secret}@127.0.0.1')")
    (failure,) = discovery.discover()
    assert failure.error == "OSError: no server at postgresql://app:<password>@127.0.0.1"


def test_a_failure_shows_no_line_of_a_password(install: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(connection.settings_dict, "PASSWORD", "hunter2\nlemma")
    install("raise OSError('as hunter2\\nlemma, in vain')")
    (failure,) = discovery.discover()
    assert failure.error == "OSError: as <password>, in vain"


def test_each_module_is_loaded_once(install: Install) -> None:
    install("import builtins\nbuiltins.pgperf_loaded = getattr(builtins, 'pgperf_loaded', 0) + 1")
    discovery.discover()
    discovery.discover()
    assert sys.modules["builtins"].pgperf_loaded == 1  # type: ignore[attr-defined]
    del sys.modules["builtins"].pgperf_loaded  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("import no_such_module", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("def broken(:", "SyntaxError: invalid syntax"),
        ("raise ValueError('first line\\nsecond line')", "ValueError: first line"),
        ("raise KeyError", "KeyError"),
        (
            "from pgperf.registry import workload\n@workload('Odd Name')\ndef f(): ...",
            "InvalidDefinition: workload 'Odd Name': write it app.name, in lower case letters, digits and underscores",
        ),
        (
            "from pgperf.registry import workload\n@workload('pgperf.mine')\ndef f(): ...",
            "InvalidDefinition: workload 'pgperf.mine': names that begin with pgperf. are pgperf's own; rename it",
        ),
    ],
)
def test_a_module_that_fails_is_named_with_its_error_and_the_others_go_on(
    install: Install, text: str, error: str
) -> None:
    install(text)
    (failure,) = discovery.discover()
    assert failure.module.endswith(".pgperf_workloads")
    assert failure.error.startswith(error)
    assert "books.page" in discovery.names()
    (warning,) = [each for each in checks.check_workloads() if each.id == "pgperf.W014"]
    assert failure.module in str(warning.msg)
    assert error in str(warning.msg)


def test_list_shows_what_is_registered_and_what_failed(install: Install) -> None:
    install("import no_such_module")
    rows = {row["name"]: row for row in listing.workloads()}
    assert rows["books.page"]["title"].startswith("A page of the catalogue")
    (failed,) = [row for row in rows.values() if row["error"]]
    assert "no_such_module" in failed["error"]


@pytest.mark.django_db
def test_list_prints_them(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("pgperf", "list")
    assert "books.authors_prefetched" in capsys.readouterr().out
