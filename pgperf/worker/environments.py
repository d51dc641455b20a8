"""The environments of a definition on this machine: what each can run, and why not the rest."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from pgperf.core.client_environment import DEFAULT
from pgperf.core.exceptions import LayerUnavailable
from pgperf.core.layers import LAYERS
from pgperf.core.records import Definition, LeftOut
from pgperf.db import client_environments
from pgperf.install import environments, launch
from pgperf.install.environments import UsableEnvironment

#: An environment whose Python answered, or why it cannot be used.
Usable = UsableEnvironment | str


def examined(definition: Definition) -> dict[str, Usable]:
    """The definition's environments by name, and the default one; none if there is only that one."""
    if not definition.has_environments:
        return {}
    default = environments.default()
    own = UsableEnvironment(default, environments.examine(default))
    return {DEFAULT: own, **{name: examine(name) for name in definition.environments if name != DEFAULT}}


def examine(name: str) -> Usable:
    """An environment of the settings, after its Python has started once."""
    environment = client_environments.configured().get(name)
    if environment is None:
        return f"PGPERF['ENVIRONMENTS'] of this worker has no {name!r}"
    try:
        installed = environments.examine(environment)
    except LayerUnavailable as error:
        return str(error)
    return environments.refusal(installed) or UsableEnvironment(environment, installed)


def described() -> dict[str, Any]:
    """Every environment of the settings: its versions, or why it cannot be used (`refusal`)."""
    found = {name: examine(name) for name in client_environments.configured()}
    return {
        name: {"refusal": each} if isinstance(each, str) else each.installed.to_json()
        for name, each in found.items()
    }


def usable(found: Mapping[str, Usable]) -> dict[str, UsableEnvironment]:
    """Those of them that can be used."""
    return {name: each for name, each in found.items() if not isinstance(each, str)}


@dataclass(frozen=True)
class Abilities:
    """Why an environment lacks a layer in a mode, or in a connection mode; "" where it does not."""

    mode: Callable[[str, str], str]
    connection: Callable[[str, str], str]

    @classmethod
    def here(cls, build_dir: str, interpreters: Mapping[str, str]) -> "Abilities":
        """Those of the default environment."""
        return cls(
            partial(launch.unavailable, build_dir=build_dir, interpreters=interpreters),
            partial(launch.connection_unavailable, build_dir=build_dir, interpreters=interpreters),
        )

    @classmethod
    def of(cls, found: Usable) -> "Abilities":
        if isinstance(found, str):
            reason = found
            return cls(lambda _layer, _mode: reason, lambda _layer, _mode: reason)
        return cls(
            partial(environments.unavailable, installed=found.installed),
            partial(environments.connection_unavailable, installed=found.installed),
        )


def left_out(definition: Definition, here: Abilities, found: Mapping[str, Usable]) -> Iterator[LeftOut]:
    """What each environment cannot run of the definition, and always the default one: statements are
    captured there. The plan leaves out layers that run in the default one only.
    """
    if not definition.has_environments:
        yield from _left_out(definition, definition.layers, here, "")
        return
    python = [layer for layer in definition.layers if LAYERS[layer].has_environments]
    for name in dict.fromkeys((DEFAULT, *definition.environments)):
        own = here if name == DEFAULT else Abilities.of(found[name])
        yield from _left_out(definition, definition.layers if name == DEFAULT else python, own, name)


def _left_out(
    definition: Definition, layers: Iterable[str], abilities: Abilities, environment: str
) -> Iterator[LeftOut]:
    for layer in layers:
        reasons = {mode: abilities.mode(layer, mode) for mode in definition.modes}
        lacking = {mode: reason for mode, reason in reasons.items() if reason}
        if len(lacking) == len(reasons):
            yield LeftOut(layer=layer, environment=environment, reason=next(iter(lacking.values())))
            continue
        for mode, reason in lacking.items():
            yield LeftOut(layer=layer, mode=mode, environment=environment, reason=reason)
        for mode in definition.connection_modes:
            if reason := abilities.connection(layer, mode):
                yield LeftOut(layer=layer, connect=mode, environment=environment, reason=reason)
