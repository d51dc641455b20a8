"""The environment, the captures and the run's own time as tables."""

import pytest

from pgperf.models import Run
from pgperf.reports import environment
from tests import factories
from tests.reports.reading import texts


@pytest.fixture
def run(db: None) -> Run:
    return factories.make_results(factories.make_run())


def test_the_environment_is_flattened(run: Run) -> None:
    by_caption = {table.caption: texts(table) for table in environment.environment_tables(run.environment)}
    assert ["shared_buffers", "128MB"] in by_caption["Server"]
    assert ["psycopg 3 · driver version", "3.3.9"] in by_caption["Layers"]
    assert ["Python", "3.11.2"] in by_caption["General"]


def test_numbers_are_as_long_as_they_say_something() -> None:
    (table,) = environment.environment_tables(
        {"memory": {"free_bytes": 23_035_392_000, "load": 0.86667453910}}
    )
    assert texts(table) == [["free", "21.5\xa0GB"], ["load", "0.8667"]]


def test_what_is_not_known_is_said_so() -> None:
    (table,) = environment.environment_tables({"machine": {"hypervisor": None, "steal_in_cpu_times": False}})
    assert texts(table) == [["hypervisor", "not known"], ["steal in CPU times", "no"]]


def test_timings_leave_out_what_was_not_measured() -> None:
    table = environment.timings_table({"wall_s": 10.0, "slices_s": 8.0})
    assert texts(table) == [
        ["slices (lead-ins and windows)", "8.00", "80.0 %"],
        ["the rest: checks, and the time between slices", "2.00", "20.0 %"],
        ["whole run", "10.0", "100 %"],
    ]


def test_how_the_run_ended_is_a_sentence_and_no_table() -> None:
    ended = {"ending": {"precision": 0.1965}, "predicted": {"precision": 0.2}, "python": "3.11.2"}
    assert [texts(table) for table in environment.environment_tables(ended)] == [[["Python", "3.11.2"]]]


@pytest.mark.parametrize("access", [None, "role_ada", ["role_ada"], {"tcp": "role_ada"}, {"tcp": None}])
def test_no_stored_access_names_a_role_in_a_file_that_is_sent(access: object) -> None:
    shown = environment.nameless({"access": access, "python": "3"})
    assert "role_ada" not in str(shown)
    assert shown["python"] == "3"
