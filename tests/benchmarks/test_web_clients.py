"""benchmarks.web_clients: servers leave the clients' CPU, whatever they start and end meanwhile."""

from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks import web_clients

PARENT, CHILD, GRANDCHILD, ENDED = 1, 2, 3, 4
CHILDREN = {PARENT: [CHILD, ENDED], CHILD: [GRANDCHILD]}


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """What is asked of the processes, in order; one has ended since it was listed."""
    found: list[tuple[str, int]] = []

    def pin(pid: int, cpus: frozenset[int]) -> bool:
        assert cpus == {1, 2}
        found.append(("pin", pid))
        return pid != ENDED

    def children(pid: int) -> list[int]:
        found.append(("children", pid))
        return CHILDREN.get(pid, [])

    monkeypatch.setattr(web_clients.placement, "pin", pin)
    monkeypatch.setattr(web_clients.schedstat, "children", children)
    monkeypatch.setattr(web_clients.psutil, "pid_exists", lambda pid: pid != ENDED)
    return found


def part(pid: int) -> Any:
    return SimpleNamespace(process=SimpleNamespace(pid=pid))


def test_a_process_is_pinned_before_its_children_are_listed(steps: list[tuple[str, int]]) -> None:
    web_clients.place([part(PARENT)], [1, 2])
    assert [pid for step, pid in steps if step == "pin"] == [PARENT, CHILD, GRANDCHILD, ENDED]
    for pid in (PARENT, CHILD, GRANDCHILD):
        assert steps.index(("pin", pid)) < steps.index(("children", pid))


def test_a_process_that_may_not_be_pinned_ends_the_script(
    steps: list[tuple[str, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web_clients.psutil, "pid_exists", lambda pid: True)
    with pytest.raises(SystemExit, match=f"does not allow to pin process {ENDED}"):
        web_clients.place([part(PARENT)], [1, 2])
