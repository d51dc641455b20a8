"""Pages of the site as workloads: which paths and which users may be measured."""

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.urls import Resolver404, ResolverMatch, resolve
from django.utils import translation
from django.utils.translation import gettext as _

from pgperf.conf import get_settings

#: Characters that a browser would send percent-encoded.
_ENCODED = re.compile(r"[^!-~]")
_DOTS = {".", ".."}
#: What Django's own admin and its documentation call their URLs, under whatever path they are.
_ADMIN = {"admin", "django-admindocs"}


def check(path: str, user: str) -> None:
    """Raises ValidationError, by field of a Workload, unless the site has the page, outside of its
    admin, and the user is one of PGPERF["PAGE_USERS"].
    """
    errors: dict[str, str] = {}
    if problem := path_problem(path):
        errors["path"] = problem
    if problem := user_problem(user):
        errors["page_user"] = problem
    if errors:
        raise ValidationError(errors)


def path_problem(path: str) -> str:
    """Why the path is no page that may be measured; "" if it is one."""
    if not path.startswith("/") or path.startswith("//"):
        return _("Enter a path of this site that begins with one /, for example /books/?page=2.")
    if "#" in path:
        return _("Leave out the part after #: a browser does not send it.")
    if _ENCODED.search(path):
        return _("Write spaces and other letters than ASCII percent-encoded, for example %20.")
    if _DOTS & set(unquote(urlsplit(path).path).split("/")):
        return _("Leave out the parts . and .. of the path: a web server may read another page's path there.")
    try:
        match = _resolved(urlsplit(path).path)
    except Resolver404:
        return _missing(path)
    except Exception as error:
        return _("The site's URLs cannot be loaded (%s).") % type(error).__name__
    if _ADMIN & set(match.app_names):
        return _("Pages of the admin are not measured.")
    return ""


def user_problem(user: str) -> str:
    """Why the page may not be seen as that user; "" if it may, or if it is a visitor."""
    allowed = get_settings().PAGE_USERS
    if not user or user in allowed:
        return ""
    known = ", ".join(allowed) or _("none")
    return _("PGPERF['PAGE_USERS'] does not name this user; it names: %s.") % known


def account(user: str) -> Any:
    """The account of a page's user. Raises ValidationError if it may not be used."""
    if problem := user_problem(user):
        raise ValidationError({"page_user": problem})
    model = get_user_model()
    try:
        found = model._default_manager.get_by_natural_key(user)
    except model.DoesNotExist:
        raise ValidationError({"page_user": _("This site has no user of that name.")}) from None
    if not found.is_active:
        raise ValidationError({"page_user": _("This user is not active.")})
    if getattr(found, "is_staff", False) or getattr(found, "is_superuser", False):
        raise ValidationError({"page_user": _("No page is measured as a member of the staff.")})
    return found


def parts(workload: Any) -> Mapping[str, Any]:
    """The fields of a Workload that only a page has, where they are not their defaults."""
    given = {"page_user": workload.page_user, "one_capture": workload.one_capture}
    return {name: value for name, value in given.items() if value}


def _resolved(path: str) -> ResolverMatch:
    """What the site's URLs have for a path, whose language its prefix may name."""
    language = translation.get_language_from_path(path) or settings.LANGUAGE_CODE
    with translation.override(language):
        return resolve(unquote(path))


def _missing(path: str) -> str:
    """This site has no such page; the remedy, where only the last slash is missing, or the prefix of
    the site is there.
    """
    plain, prefix = urlsplit(path).path, (settings.FORCE_SCRIPT_NAME or "").rstrip("/")
    if prefix and plain.startswith(f"{prefix}/"):
        return _("Leave out %s, below which the site is: it belongs to the URL of a Target.") % prefix
    if settings.APPEND_SLASH and not plain.endswith("/"):
        try:
            _resolved(plain + "/")
            return _("This site has no such page. Enter %s/ with a slash at its end.") % plain
        except Resolver404:
            pass
    return _("This site has no such page.")
