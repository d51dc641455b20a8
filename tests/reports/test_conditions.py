"""The conditions of a run as a table, and what the page says of workers and threads."""

from typing import Any

import pytest

from pgperf.core.records import (
    BULK_APIS,
    CONNECTION_MODES,
    ROW_TYPES,
    TRANSACTIONS,
    Definition,
    WorkloadDefinition,
)
from pgperf.models import Benchmark, Run
from pgperf.reports import run_page
from pgperf.reports.conditions import conditions_table
from tests import factories
from tests.reports.reading import texts

ONE = WorkloadDefinition("one", "SELECT 1")


def shown(definition: dict[str, Any]) -> dict[str, str]:
    return dict(texts(conditions_table(definition)))


def asked(**fields: Any) -> dict[str, Any]:
    return Definition("suite", (ONE,), ("psycopg",), ("tcp",), **fields).to_json()


def test_every_condition_is_shown_as_the_form_names_it() -> None:
    found = shown(asked(clients=(1, 8), workers=10, connection_modes=("persistent", "per_operation")))
    assert found["Clients"] == "1, 8"
    assert found["Workers"] == "10"
    assert found["Connection modes"] == "persistent, per operation"
    assert found["Row type"] == "tuple: by position"
    assert found["Transaction"] == "autocommit in every driver"


@pytest.mark.parametrize(
    ("field", "values"),
    [("row_type", ROW_TYPES), ("transaction", TRANSACTIONS), ("connection_modes", CONNECTION_MODES)],
)
def test_no_two_conditions_look_alike(field: str, values: tuple[str, ...]) -> None:
    made = [shown(asked(**{field: (value,) if field == "connection_modes" else value})) for value in values]
    assert len({tuple(each.items()) for each in made}) == len(values)


def test_a_search_shows_its_limit_and_the_schedule_of_its_rates() -> None:
    plain, searching = (shown(asked(rate_search_ms=limit)) for limit in (0.0, 10.0))
    assert set(searching) - set(plain) == {"Rate search (p99, ms)", "Schedule of the rates"}
    assert searching["Rate search (p99, ms)"] == "10.0"


def test_load_hosts_have_their_conditions_in_words_where_there_are_some() -> None:
    plain, spread = shown(asked()), shown(asked(load_hosts=(1, 2)))
    assert set(spread) - set(plain) == {"Names of load hosts", "Go on without a lost load host"}
    assert spread["Names of load hosts"] == "any"
    assert spread["Go on without a lost load host"] == "no"


@pytest.mark.parametrize("api", BULK_APIS)
def test_the_api_for_many_rows_is_shown_where_rows_are_inserted(api: str) -> None:
    title = str(dict(Benchmark.BulkApi.choices)[api])
    plain = asked(bulk_api=api)
    inserting = {**plain, "workloads": [{**plain["workloads"][0], "bulk": {"kind": "copy"}}]}
    assert title not in shown(plain).values()
    assert title in shown(inserting).values()


def test_a_definition_of_an_older_version_shows_what_it_meant() -> None:
    found = shown({"workload": {"name": "w"}, "modes": ["simple"], "clients": [1]})
    assert (found["Connection modes"], found["Workers"]) == ("persistent", "1")
    assert "Placement" not in found


@pytest.fixture
def run(db: None) -> Run:
    definition = {"workloads": [{"name": "w"}], "modes": ["simple"], "clients": [1], "workers": 10}
    return factories.make_results(factories.make_run(definition=definition))


def test_the_page_has_the_conditions_and_a_sentence_on_workers(run: Run, admin_client: Any) -> None:
    run.variants.filter(layer="psycopg").update(workers=10)
    text = admin_client.get(f"/admin/pgperf/run/{run.pk}/change/").content.decode()
    assert "each client process has 10 threads, or 10 tasks of an event loop" in text
    assert "<caption>Conditions" in text


def test_without_workers_the_page_has_no_such_sentence(run: Run) -> None:
    part = run_page.result(run).part("speed")
    assert part is not None
    assert part["layer_notes"] == []


def test_the_page_says_that_the_connects_of_one_thread_wait_for_each_other(run: Run) -> None:
    run.variants.filter(layer="libpq").update(layer="pgbench_one_thread")
    part = run_page.result(run).part("speed")
    assert part is not None
    (note,) = part["layer_notes"]
    assert "one thread makes all connections, one after the other" in note
