"""E-mail about changes to the users that `PGPERF["CHANGE_EMAILS"]` names.

Each user gets one message for a run, if the user may see the run at that moment. It has the changes
whose runs the user may see.
"""

import logging
import threading
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import urlencode

from django.contrib.auth import get_user_model
from django.core import mail
from django.db import router
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from pgperf.access import permissions
from pgperf.conf import get_settings
from pgperf.models import ChangePoint, Run
from pgperf.runs.change_text import layers, levels, sentence, told
from pgperf.runs.seen_changes import seen_changes
from pgperf.runs.step_series import comparable

logger = logging.getLogger(__name__)

VIEW = "pgperf.view_run"
#: Seconds that the worker's next run waits for the mail server.
TIMEOUT_S = 10.0


def send(run: Run, changes: Sequence[ChangePoint]) -> None:
    """Never raises, and returns after TIMEOUT_S at the latest: the log has what was not sent."""
    if not changes or not get_settings().CHANGE_EMAILS:
        return
    try:
        messages = list(_messages(run, changes))
    except Exception as error:
        logger.error("run %s: no e-mail about changes: %s", run.pk, type(error).__name__)
        return
    sender = threading.Thread(target=_send_all, args=(run.pk, messages), daemon=True)
    sender.start()
    sender.join(TIMEOUT_S)
    if sender.is_alive():
        logger.error("run %s: the mail server has not taken the e-mail within %s s", run.pk, TIMEOUT_S)


def _send_all(run: int, messages: Sequence[mail.EmailMessage]) -> None:
    """An address that the server refuses does not keep the other users from theirs."""
    for message in messages:
        try:
            message.send()
        except Exception as error:
            logger.error("run %s: an e-mail about changes was not sent: %s", run, type(error).__name__)


def _messages(run: Run, changes: Sequence[ChangePoint]) -> Iterator[mail.EmailMessage]:
    line = comparable(Run.objects.using(router.db_for_write(Run)), run)
    for user in _readers(run):
        known = {each.pk: each for each in seen_changes(line, permissions.visible(line, user))}
        if seen := told([known[change.pk] for change in changes if change.pk in known]):
            yield mail.EmailMessage(_subject(run, seen), _body(run, seen), to=[_address(user)])


def _readers(run: Run) -> list[Any]:
    """The chosen users who have an address and may see the run now. A user model may lack the column
    `is_active`, but not the attribute.
    """
    users = get_user_model()
    chosen = users._default_manager.filter(**{f"{users.USERNAME_FIELD}__in": get_settings().CHANGE_EMAILS})
    return [user for user in chosen if user.is_active and _address(user) and _sees(user, run)]


def _sees(user: Any, run: Run) -> bool:
    return bool(user.has_perm(VIEW)) and permissions.may_see(user, run)


def _address(user: Any) -> str:
    """A site's own user model may name another field, or have none."""
    return str(getattr(user, getattr(user, "EMAIL_FIELD", "email"), "") or "")


def _subject(run: Run, changes: Sequence[ChangePoint]) -> str:
    text = ngettext(
        "pgperf: %(count)d change in %(benchmark)s on %(database)s",
        "pgperf: %(count)d changes in %(benchmark)s on %(database)s",
        len(changes),
    )
    names = {"benchmark": run.benchmark_name, "database": run.database_name}
    return text % {"count": len(changes), **names}


def _body(run: Run, changes: Sequence[ChangePoint]) -> str:
    names = {"run": run.pk, "benchmark": run.benchmark_name, "database": run.database_name}
    page = _page(run)
    shows = [_("The page Results over runs of the benchmark shows them:"), page] if page else []
    return "\n".join(
        [
            _("Run %(run)s of %(benchmark)s on %(database)s ended, and with it these changes were found.")
            % names,
            "",
            *(line for change in changes for line in _lines(change)),
            "",
            *shows,
            _("This command prints them:"),
            f"python manage.py pgperf history {run.benchmark_name} --database {run.database_name}",
            "",
        ]
    )


def _lines(change: ChangePoint) -> Iterator[str]:
    """The change, and the layers that changed with it."""
    yield f"{sentence(change)}:"
    yield f"  {levels(change)}."
    if told := layers(change):
        yield _("  At the same run:")
        yield from (f"  - {line}" for line in told)


def _page(run: Run) -> str:
    """The address of the page; "" in a site without pgperf's pages."""
    try:
        path = reverse("admin:pgperf_benchmark_runs", args=[run.benchmark_id])
    except Exception:  # as wide as what a urls.py can raise; Django's own checks tell of it
        return ""
    query = urlencode({"database": run.database_id, "definition": run.definition_hash})
    return f"{get_settings().SITE_URL.rstrip('/')}{path}?{query}"
