"""psycopg 3 in C, which is compiled where it is installed: the cases that every other client takes,
in each mode.
"""

import inspect
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from example import postgres_wheel
from pgperf.core import protocol
from pgperf.core.connection_errors import CLEAR_TEXT
from pgperf.core.records import MODES, Route
from pgperf.install import launch
from tests.clients import test_conformance as conformance
from tests.clients import test_memory_limit as memory
from tests.clients.conftest import Start
from tests.clients.driving import Driven, Subject
from tests.impostor import Impostor
from tests.security import test_clear_text as clear_text

pytestmark = pytest.mark.registry

CASES: tuple[Callable[..., None], ...] = (
    conformance.test_every_layer_sends_the_same_messages,
    conformance.test_without_cold_phases_it_runs_the_statement_once,
    conformance.test_the_environment_changes_nothing,
    conformance.test_the_session_has_one_time_zone_whatever_the_servers_is,
    conformance.test_results_of_every_kind_in_one_operation,
    conformance.test_arguments_of_every_kind,
    conformance.test_a_command_without_rows_and_with_a_notice,
    conformance.test_an_operation_runs_its_statements_in_order,
    conformance.test_a_statement_without_python_values_runs_unchanged,
    conformance.test_bad_sql_is_an_error_with_its_code_and_without_the_arguments,
    conformance.test_the_error_of_a_wrong_password_does_not_contain_it,
    conformance.test_a_password_that_the_server_repeats_is_scrubbed,
    conformance.test_a_connection_string_as_database_name_is_not_expanded,
    conformance.test_a_refused_connection_is_an_error,
    conformance.test_a_backend_terminated_mid_slice,
    conformance.test_the_connection_cut_mid_slice,
    conformance.test_every_client_sets_settings_and_reads_them_as_text,
    memory.test_a_result_within_the_limit_is_read,
    memory.test_without_a_limit_the_client_says_so,
    memory.test_what_the_server_says_of_memory_is_another_error,
)


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The Python of an environment of its own with psycopg in C, compiled against the embedded
    PostgreSQL's libpq.
    """
    folder, wheel = tmp_path_factory.mktemp("psycopg_c"), postgres_wheel.installation()
    assert wheel
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    path, flags = f"{wheel / 'bin'}:{os.environ['PATH']}", f"-Wl,-rpath,{wheel / 'lib'}"
    install = [str(folder / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check", "psycopg[c]"]
    subprocess.run(install, check=True, env={**os.environ, "PATH": path, "LDFLAGS": flags})
    return str(folder / "bin" / "python")


@pytest.fixture
def start_c(python: str, admin: psycopg.Connection) -> Iterator[Start]:
    """Starts it as a run does, whatever the subject; what was started is gone when the test ends."""
    started: list[Driven] = []

    def start(subject: Subject, **environment: str) -> Driven:
        argv = launch.command("psycopg_c", "", {"psycopg_c": python})
        started.append(Driven(argv, **environment))
        return started[-1]

    yield start
    for client in started:
        client.__exit__(None, None, None)


@pytest.mark.parametrize("mode", MODES)
def test_the_c_implementation_is_loaded(start_c: Start, tcp: Route, python: str, mode: str) -> None:
    assert launch.unavailable("psycopg_c", mode, "", {"psycopg_c": python}) == ""
    ready = conformance.started(start_c, Subject("psycopg_c", mode, "c"), tcp).read(protocol.Ready)
    assert (ready.versions["driver"], ready.versions["implementation"]) == ("psycopg", "c")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__.removeprefix("test_"))
def test_it_behaves_like_the_other_implementations(
    case: Callable[..., None], mode: str, start_c: Start, tcp: Route, admin: psycopg.Connection
) -> None:
    given: dict[str, Any] = {
        "subject": Subject("psycopg_c", mode, "c"), "start": start_c, "tcp": tcp, "admin": admin,
    }  # fmt: skip
    case(**{name: given[name] for name in inspect.signature(case).parameters})


@pytest.mark.parametrize("result", memory.RESULTS)
def test_a_result_beyond_the_limit_is_an_out_of_memory_error(start_c: Start, tcp: Route, result: str) -> None:
    memory.test_a_result_beyond_the_limit_is_an_out_of_memory_error(
        start_c, Subject("psycopg_c", "simple", "c"), tcp, result
    )


@pytest.mark.parametrize("mode", MODES)
def test_it_answers_no_request_for_clear_text(python: str, tmp_path: Path, mode: str) -> None:
    with Impostor() as server:
        route = clear_text.route(server)
        assert CLEAR_TEXT in clear_text.start_alone("psycopg_c", mode, route, tmp_path, psycopg_c=python)
        assert server.passwords == []


def test_it_does_not_show_a_password_on(python: str, tmp_path: Path) -> None:
    with Impostor() as server:
        route = clear_text.route(server, allow_cleartext_password=True)
        text = clear_text.start_alone("psycopg_c", "simple", route, tmp_path, psycopg_c=python)
        assert server.passwords == [clear_text.SECRET]
    assert clear_text.SECRET[::-1] not in text
