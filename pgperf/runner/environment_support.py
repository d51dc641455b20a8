"""Layers that do not answer in an environment, or answer as another pgperf: found by starting one
client of each before the run.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from pgperf.core.client_environment import DEFAULT
from pgperf.core.exceptions import ClientFailed
from pgperf.core.records import LeftOut, Plan, Route, Variant
from pgperf.install.environments import UsableEnvironment
from pgperf.runner.client_startup import started
from pgperf.runner.environment_places import places

_APPLICATION = "pgperf-environment"


def refusals(
    plan: Plan, routes: Mapping[str, Route], usable: Mapping[str, UsableEnvironment]
) -> list[LeftOut]:
    """What the plan has to leave out of its environments, with the reason in the client's words."""
    return [*_refusals(plan, routes, usable)] if plan.definition.has_environments else []


def _refusals(
    plan: Plan, routes: Mapping[str, Route], usable: Mapping[str, UsableEnvironment]
) -> Iterator[LeftOut]:
    for variant in _one_of_each(plan.variants):
        if reason := _refusal(plan, variant, routes, usable):
            yield LeftOut(
                workload=variant.workload if variant.named else "",
                layer=variant.layer,
                mode=variant.mode,
                connect=variant.connect,
                environment=variant.environment,
                reason=reason,
            )


def _one_of_each(variants: Sequence[Variant]) -> list[Variant]:
    """The first variant of each workload, layer and way to work in each environment, as one client."""
    found: dict[Variant, Variant] = {}
    for variant in variants:
        if variant.environment != DEFAULT and not variant.control:
            found.setdefault(
                replace(variant, route="", clients=1, workers=1), replace(variant, clients=1, workers=1)
            )
    return list(found.values())


def _refusal(
    plan: Plan, variant: Variant, routes: Mapping[str, Route], usable: Mapping[str, UsableEnvironment]
) -> str:
    """Why a client of the variant does not work; "" if it does."""
    group = [(variant, _APPLICATION)]
    try:
        with (
            places(plan.definition, usable) as found,
            started(
                plan.definition,
                group,
                dict(routes),
                "",
                False,
                None,
                places=found.in_block(0) if found else None,
            ),
        ):
            return ""
    except ClientFailed as error:
        return str(error)
