"""What a load host prepares for a run, without a database."""

from pgperf.core.records import Page, Route, WorkloadDefinition
from pgperf.runner.memory import RunMemory
from pgperf.runner.plan import make_plan
from pgperf.worker import load_preparation
from tests.runner.builders import definition


def test_nothing_is_captured_of_a_page_that_is_only_requested() -> None:
    """There is no route to a database either."""
    web = Route("web", "127.0.0.1", 8000, "", "", "", url="http://127.0.0.1:8000")
    work = WorkloadDefinition("page", "", page=Page("/"))
    plan = make_plan(definition(workloads=(work,), layers=("http",), routes=("web",), web_routes={"web": ""}))
    assert work.is_site
    assert load_preparation._captured(plan, {"web": web}, RunMemory.now(None)) == plan
