"""The session of a page's user: made for one run, ended with it.

Nothing is sent and nothing is stored as on a login: the user's last login stays. The key follows
from the run and the site's SECRET_KEY. So the session of a run whose worker was killed is found and
removed without its key being stored anywhere, and a load host of the run finds it without being
told.
"""

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from importlib import import_module
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth import (
    BACKEND_SESSION_KEY,
    HASH_SESSION_KEY,
    SESSION_KEY,
    get_backends,
)
from django.core.exceptions import ValidationError
from django.db import DEFAULT_DB_ALIAS, connections, router
from django.utils import timezone
from django.utils.crypto import salted_hmac

from pgperf.conf import get_settings
from pgperf.core.delayed_routes import apart
from pgperf.core.exceptions import InvalidDefinition, SessionNotFound
from pgperf.core.records import Definition, WorkloadDefinition
from pgperf.models import Database, Run
from pgperf.workloads import pages

logger = logging.getLogger(__name__)

_SALT = "pgperf.page_session"
#: Letters of a session key, as Django makes them.
_LETTERS = 32
_IN_COOKIES = "django.contrib.sessions.backends.signed_cookies"


@contextmanager
def opened(run: Run, definition: Definition) -> Iterator[Definition]:
    """The definition with the cookies of its pages' users, whose sessions end with the context.

    Raises InvalidDefinition, which names the field, if a user may not see a page of this run.
    """
    users = users_of(definition)
    if not users:
        yield definition
        return
    check_database(run.database)
    check_way(run.database, definition.web_routes)
    try:
        for user in users:
            _open(run, user)
        yield _with_cookies(run, definition)
    finally:
        _remove_or_leave(run, definition)


def found(run: Run, definition: Definition) -> Definition:
    """The definition with the cookies of the sessions that the run's owner has made, for a load host.

    Raises SessionNotFound where one is not found here, and InvalidDefinition, which names the field,
    if a user may not see a page of this run.
    """
    users = users_of(definition)
    if not users:
        return definition
    check_database(run.database)
    check_way(run.database, definition.web_routes)
    for user in users:
        _find(run, user)
    return _with_cookies(run, definition)


def _find(run: Run, user: str) -> None:
    """Raises SessionNotFound unless this host finds the user's own session under its key."""
    account, store = _account(user), _store(run, user)
    if not store.exists(store.session_key) or store.get(SESSION_KEY) != _id_of(account):
        raise SessionNotFound(
            f"page_user: this host does not find the session that the run's owner made for {user}: its SECRET_KEY,"
            " its SESSION_ENGINE or the store of its sessions is another one; set those of the owner"
        )


def users_of(definition: Definition) -> list[str]:
    """The users of the definition's pages."""
    return list(
        dict.fromkeys(work.page.user for work in definition.workloads if work.page and work.page.user)
    )


def check_database(database: Database | None) -> None:
    """Raises InvalidDefinition unless it is the site's own: another one has none of its users."""
    own = connections.databases[DEFAULT_DB_ALIAS]
    same = database and (database.credential, database.dbname) == (f"alias:{DEFAULT_DB_ALIAS}", own["NAME"])
    if not same:
        raise InvalidDefinition(
            f"page_user: pages are seen as a user only on the site's own database, with the credential"
            f" alias:{DEFAULT_DB_ALIAS}; choose it, or request the page as a visitor"
        )


def check_way(database: Database | None, web_routes: Iterable[str]) -> None:
    """Raises InvalidDefinition if a session's cookie would leave this host in clear text."""
    assert database
    targets = {apart(route)[0] for route in web_routes}
    for target in database.targets.filter(route__in=targets):
        address = urlsplit(target.url)
        if address.scheme != "https" and not _is_loopback(address.hostname or ""):
            raise InvalidDefinition(
                f"page_user: the cookie of a user's session goes by loopback or TLS only, and route {target.route}"
                " is neither; use https, or request the page as a visitor"
            )


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def remove(run: Run, definition: Definition) -> None:
    """Remove the sessions of a run that has ended. Those that are gone already do no harm."""
    for user in users_of(definition):
        _store(run, user).delete()


def _remove_or_leave(run: Run, definition: Definition) -> None:
    """What a run measured counts, even if the store of its sessions does not answer at its end."""
    try:
        remove(run, definition)
    except Exception as error:
        logger.warning(
            "run %s: the sessions of its pages' users are left (%s); pgperf reconcile ends them",
            run.pk,
            type(error).__name__,
        )


def remove_left() -> int:
    """End the sessions of runs that have ended, which their own processes could not; how many there
    were.

    A session ends by itself MAX_RUN_SECONDS after its run began.
    """
    since = timezone.now() - timedelta(seconds=get_settings().MAX_RUN_SECONDS)
    ended = Run.objects.using(router.db_for_write(Run)).filter(finished_at__gte=since)
    stores = [store for run in ended for store in _stores(run)]
    there = [store for store in stores if store.exists(store.session_key)]
    for store in there:
        store.delete()
    return len(there)


def _stores(run: Run) -> list[Any]:
    try:
        return [_store(run, user) for user in users_of(Definition.from_json(run.definition))]
    except InvalidDefinition as error:
        logger.warning("run %s: %s", run.pk, error)
        return []


def _open(run: Run, user: str) -> None:
    if settings.SESSION_ENGINE == _IN_COOKIES:
        raise InvalidDefinition(
            "page_user: this site keeps sessions in cookies, which pgperf cannot end; request the page as a visitor"
        )
    account, store = _account(user), _store(run, user)
    store.delete()
    store.clear()  # else it would look for the key, and take another one
    store[SESSION_KEY] = _id_of(account)
    store[BACKEND_SESSION_KEY] = _backend_of(account)
    store[HASH_SESSION_KEY] = account.get_session_auth_hash()
    # At a fixed time: a number of seconds would begin anew in each request of a site that saves then.
    store.set_expiry(timezone.now() + timedelta(seconds=get_settings().MAX_RUN_SECONDS))
    store.save(must_create=True)


def _account(user: str) -> Any:
    """Raises InvalidDefinition for a user as whom no page may be seen."""
    try:
        return pages.account(user)
    except ValidationError as error:
        raise InvalidDefinition(f"page_user: {' '.join(error.messages)}") from None


def _id_of(account: Any) -> str:
    """As a session has it."""
    return str(account._meta.pk.value_to_string(account))


def _backend_of(account: Any) -> str:
    """The first of the site's authentication backends that knows the account. Some know none: they
    check permissions, or count failed logins.
    """
    for path, backend in zip(settings.AUTHENTICATION_BACKENDS, get_backends(), strict=True):
        if hasattr(backend, "get_user") and backend.get_user(account.pk):
            return path
    raise InvalidDefinition("page_user: no authentication backend of this site knows this user")


def _with_cookies(run: Run, definition: Definition) -> Definition:
    return replace(definition, workloads=tuple(_with_cookie(run, work) for work in definition.workloads))


def _with_cookie(run: Run, work: WorkloadDefinition) -> WorkloadDefinition:
    if not (work.page and work.page.user):
        return work
    return replace(work, cookie=f"{settings.SESSION_COOKIE_NAME}={key_of(run, work.page.user)}")


def _store(run: Run, user: str) -> Any:
    return import_module(settings.SESSION_ENGINE).SessionStore(key_of(run, user))


def key_of(run: Run, user: str) -> str:
    """The key of the session of a user in one attempt of a run."""
    value = f"{run.pk}/{run.attempt}/{user}"
    return salted_hmac(_SALT, value, algorithm="sha256").hexdigest()[:_LETTERS]
