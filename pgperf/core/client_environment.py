"""The environments of `PGPERF["ENVIRONMENTS"]`: each a Python in which a variant's clients run
(standard library only).
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from pgperf.core.protocol import is_libpq_variable
from pgperf.core.secret_names import is_secret_name

#: The worker's own Python, with the site's own settings. A setting cannot take this name.
DEFAULT = "default"
#: The variable that varies the size of a client's environment.
PADDING = "PGPERF_PADDING"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,29}")
_KEYS = ("python", "settings", "variables")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MODULE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", re.ASCII)
#: Variables that pgperf sets itself, or that would start another Python than the named one.
_RESERVED = ("DJANGO_SETTINGS_MODULE", "PYTHONHOME", "PYTHONSAFEPATH", "PYTHONUNBUFFERED", PADDING)
_LOGIN_IN_URL = re.compile(r"://[^/@\s]*:[^/@\s]*@")


@dataclass(frozen=True)
class ClientEnvironment:
    """A Python with its packages, a settings module for the site ("": the worker's) and further
    environment variables.
    """

    name: str
    python: str
    settings: str = ""
    variables: Mapping[str, str] = field(default_factory=dict)

    @property
    def root(self) -> str:
        """The directory of the Python: what holds its `bin` and, in a virtual environment, its
        packages.
        """
        return os.path.dirname(os.path.dirname(self.python))

    @property
    def is_default(self) -> bool:
        return self.name == DEFAULT

    @classmethod
    def parse(cls, name: str, value: Any) -> Self:
        """One entry of the setting: a path, or a dict with `python` and the other keys.

        Raises ValueError with a sentence that says what is wrong and what is right.
        """
        if not NAME.fullmatch(name) or name == DEFAULT:
            raise ValueError(
                f"{name!r} is not a name: use 1 to 30 ASCII letters, digits, dots, hyphens and underscores, but not"
                f" {DEFAULT!r}, which is the worker's own Python"
            )
        given = value if isinstance(value, dict) else {"python": value}
        if unknown := [str(key) for key in given if key not in _KEYS]:
            raise ValueError(f"{name!r} has {', '.join(unknown)}: choose from {', '.join(_KEYS)}")
        settings = given.get("settings", "")
        if not isinstance(settings, str) or not (settings == "" or _MODULE.fullmatch(settings)):
            raise ValueError(f"{name!r}: settings must be a module's name, for example 'site.settings_pool'")
        return cls(name, _python(name, given.get("python")), settings, _variables(name, given))


def _python(name: str, value: Any) -> str:
    path = str(value) if isinstance(value, str | os.PathLike) else ""
    if not path.startswith("/") or "\0" in path:
        raise ValueError(f"{name!r}: python must be the absolute path of an interpreter")
    return path


def _variables(name: str, given: Mapping[Any, Any]) -> dict[str, str]:
    found = given.get("variables", {})
    if not isinstance(found, dict) or not all(
        isinstance(part, str) for pair in found.items() for part in pair
    ):
        raise ValueError(f"{name!r}: variables must be a dict of strings")
    for variable, value in found.items():
        if refusal := _refusal(variable, value):
            raise ValueError(f"{name!r}: variable {variable!r} {refusal}")
    return dict(found)


def _refusal(variable: str, value: str) -> str:
    """Why clients do not get the variable; "" if they do. The value is not quoted."""
    if not _VARIABLE.fullmatch(variable) or "\0" in value:
        return "cannot be set: a name has ASCII letters, digits and underscores, and a value no NUL"
    if is_libpq_variable(variable):
        return "is one of libpq's: the target has the address and the login"
    if variable in _RESERVED:
        return "is set by pgperf: choose `settings` for a settings module and `python` for another Python"
    if is_secret_name(variable) or _LOGIN_IN_URL.search(value):
        return "looks like a secret: leave it to the site's settings module"
    return ""
