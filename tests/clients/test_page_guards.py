"""The libraries whose tasks and messages a page's client refuses. None of them is installed: a module
of each stands in, with the method that all its ways pass.
"""

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from django.utils.log import AdminEmailHandler

from pgperf.clients import page_guards
from pgperf.core.exceptions import InvalidDefinition

TASK, MESSAGE = "it queues a task", "it sends a message through a channel layer"
METHODS = [
    ("arq.connections", "ArqRedis", "enqueue_job", TASK),
    ("channels_redis.core", "RedisChannelLayer", "group_send", MESSAGE),
    ("channels_redis.core", "RedisChannelLayer", "send", MESSAGE),
    ("channels_redis.pubsub", "RedisPubSubLoopLayer", "group_send", MESSAGE),
    ("channels_redis.pubsub", "RedisPubSubLoopLayer", "send", MESSAGE),
    ("django_q.signing", "SignedPackage", "dumps", TASK),
    ("django_tasks.base", "Task", "enqueue", TASK),
    ("django_tasks.task", "Task", "aenqueue", TASK),
    ("django_tasks.task", "Task", "enqueue", TASK),
    ("procrastinate.jobs", "JobDeferrer", "defer", TASK),
    ("procrastinate.jobs", "JobDeferrer", "batch_defer_async", TASK),
    ("taskiq.kicker", "AsyncKicker", "kiq", TASK),
    ("taskiq.kicker", "AsyncKicker", "schedule_by_time", TASK),
]


@pytest.fixture
def installing(monkeypatch: pytest.MonkeyPatch) -> None:
    """`install` leaves mail and Celery's tasks as they are in this process: other tests use them."""
    monkeypatch.setattr(AdminEmailHandler, "send_mail", AdminEmailHandler.send_mail)
    monkeypatch.setattr(page_guards, "refused", [])
    own = [(where, reason) for where, reason in page_guards._GUARDED if where != page_guards._MAIL]
    there = tuple(
        (tuple(row for row in where if row[0].partition(".")[0] not in ("celery", "django")), reason)
        for where, reason in own
    )
    monkeypatch.setattr(page_guards, "_GUARDED", there)


@pytest.mark.usefixtures("installing")
@pytest.mark.parametrize(("module", "owner", "method", "reason"), METHODS)
def test_a_library_that_is_installed_is_guarded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, owner: str, method: str, reason: str
) -> None:
    library = imported(tmp_path, monkeypatch, module, owner, method)
    assert getattr(library(), method)() == "done"
    page_guards.install()
    with pytest.raises(InvalidDefinition, match=f"page: {reason}"):
        getattr(library(), method)("mail.send", to="ada")
    assert page_guards.refused == [page_guards.refusal(reason)]


def imported(folder: Path, monkeypatch: pytest.MonkeyPatch, module: str, owner: str, method: str) -> Any:
    """The class of an invented library."""
    package, _, name = module.partition(".")
    (folder / package).mkdir()
    (folder / package / "__init__.py").touch()
    (folder / package / f"{name}.py").write_text(
        f"class {owner}:\n    def {method}(self):\n        return 'done'\n"
    )
    monkeypatch.syspath_prepend(str(folder))
    for each in (package, module):
        monkeypatch.delitem(sys.modules, each, raising=False)
    return getattr(import_module(module), owner)
