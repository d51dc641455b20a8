"""Stops a page that does more than read the measured database: mail, tasks, messages of channel
layers, other aliases.

What is refused is also kept in `refused`, because a view may catch the exception. That a page
writes is refused by the server, whose session is read-only.
"""

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NoReturn

from pgperf.core.exceptions import InvalidDefinition

#: What one process has refused so far, in order.
refused: list[str] = []
#: The mails to ADMINS that errors of the site have caused so far. They are not sent, and nothing is
#: raised: an error has to stay the one that it is.
mailed: list[str] = []

_MAIL = (
    ("django.core.mail.message", "EmailMessage", "send"),
    ("django.core.mail.backends.base", "BaseEmailBackend", "__init__"),
)
#: Functions that other modules may have imported already are no place for a guard, methods are. All
#: tasks of django-q2 pass its SignedPackage; those of Procrastinate go over a connection of its own.
_TASKS = (
    ("arq.connections", "ArqRedis", "enqueue_job"),
    ("celery.app.task", "Task", "apply_async"),
    ("celery.app.base", "Celery", "send_task"),
    ("django.tasks.base", "Task", "enqueue"),
    ("django.tasks.base", "Task", "aenqueue"),
    ("django_q.signing", "SignedPackage", "dumps"),
    ("django_tasks.base", "Task", "enqueue"),
    ("django_tasks.base", "Task", "aenqueue"),
    ("django_tasks.task", "Task", "enqueue"),  # before django-tasks had its module base
    ("django_tasks.task", "Task", "aenqueue"),
    ("dramatiq.actor", "Actor", "send_with_options"),
    ("dramatiq.composition", "group", "run"),
    ("dramatiq.composition", "pipeline", "run"),
    ("huey.api", "Huey", "enqueue"),
    ("procrastinate.jobs", "JobDeferrer", "defer"),
    ("procrastinate.jobs", "JobDeferrer", "defer_async"),
    ("procrastinate.jobs", "JobDeferrer", "batch_defer"),
    ("procrastinate.jobs", "JobDeferrer", "batch_defer_async"),
    ("rq.queue", "Queue", "enqueue_call"),
    ("rq.queue", "Queue", "enqueue_job"),
    ("rq.queue", "Queue", "enqueue_many"),
    ("rq.queue", "Queue", "schedule_job"),
    ("taskiq.kicker", "AsyncKicker", "kiq"),
    ("taskiq.kicker", "AsyncKicker", "schedule_by_cron"),
    ("taskiq.kicker", "AsyncKicker", "schedule_by_interval"),
    ("taskiq.kicker", "AsyncKicker", "schedule_by_time"),
)
#: To other processes. The layer in memory of channels reaches none.
_MESSAGES = (
    ("channels_redis.core", "RedisChannelLayer", "send"),
    ("channels_redis.core", "RedisChannelLayer", "group_send"),
    ("channels_redis.pubsub", "RedisPubSubLoopLayer", "send"),
    ("channels_redis.pubsub", "RedisPubSubLoopLayer", "group_send"),
)
_GUARDED = (
    (_MAIL, "it sends mail"),
    (_TASKS, "it queues a task"),
    (_MESSAGES, "it sends a message through a channel layer"),
)


def install() -> None:
    """Refuse mail, tasks and messages in this process, whichever packages for them are installed. A
    mail that the site's log sends to ADMINS is only noted.
    """
    import_module("django.utils.log").AdminEmailHandler.send_mail = _note_mail
    for where, reason in _GUARDED:
        for module, owner, method in where:
            if _is_installed(module):
                setattr(getattr(import_module(module), owner), method, _refusing(reason))


def refuse(reason: str) -> NoReturn:
    """Raises InvalidDefinition, and keeps the reason."""
    refused.append(refusal(reason))
    raise InvalidDefinition(refused[-1])


def refusal(reason: str) -> str:
    return f"page: {reason}, so pgperf does not run it inside a client"


def refuse_alias(alias: str, using: str) -> NoReturn:
    """Refuse a connection to another alias than the measured one."""
    refuse(f"it uses the alias {alias!r} of DATABASES, and only {using!r} is measured")


def _refusing(reason: str) -> Callable[..., NoReturn]:
    def refused_call(*_args: Any, **_named: Any) -> NoReturn:
        refuse(reason)

    return refused_call


def _note_mail(_handler: Any, *_args: Any, **_named: Any) -> None:
    mailed.append(refusal("it sends mail"))


def _is_installed(module: str) -> bool:
    """Is there the module, and the package that it is in?"""
    package = module.partition(".")[0]
    try:
        return find_spec(package) is not None and find_spec(module) is not None
    except ImportError:
        return False
