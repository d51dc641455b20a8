"""The environments of `PGPERF["ENVIRONMENTS"]`, by name: what a form, an import, a command or a run
may choose from.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress

from pgperf.conf import get_settings
from pgperf.core.client_environment import DEFAULT, ClientEnvironment


def configured() -> dict[str, ClientEnvironment]:
    """Those that are written well; a system check names the others."""
    found = {}
    for name, value in get_settings().ENVIRONMENTS.items():
        with suppress(ValueError):
            found[name] = ClientEnvironment.parse(name, value)
    return found


def refusals() -> Iterator[str]:
    """What is wrong with the others, a sentence each."""
    for name, value in get_settings().ENVIRONMENTS.items():
        try:
            ClientEnvironment.parse(name, value)
        except ValueError as error:
            yield str(error)


def names() -> tuple[str, ...]:
    """What may be chosen: the default environment, then those of the setting."""
    return (DEFAULT, *configured())


def unknown(asked: Iterable[str]) -> list[str]:
    """The names that this site does not have."""
    there = names()
    return [name for name in asked if name not in there]
