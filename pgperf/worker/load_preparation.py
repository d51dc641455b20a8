"""How a load host prepares itself for a run: the owner's plan, made from the run's definition; routes
with this host's secrets; the memory that its clients may take.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from pgperf.access import credentials, guardrails, page_sessions, permissions, production_pages
from pgperf.conf import get_settings
from pgperf.core import layers
from pgperf.core.delayed_routes import apart
from pgperf.core.exceptions import CredentialError, LayerUnavailable, PreflightRefused
from pgperf.core.host_part import HostPart
from pgperf.core.records import Definition, LeftOut, Plan, Route, Variant
from pgperf.delay.routes import longer
from pgperf.models import Run
from pgperf.runner import authentication, ports
from pgperf.runner.authentication import LoginConditions
from pgperf.runner.capture import statements
from pgperf.runner.memory import MIB, RunMemory, bytes_of
from pgperf.runner.plan import make_plan, sharing
from pgperf.runner.ports import LocalPorts
from pgperf.runs import query_access
from pgperf.worker import web_origin
from pgperf.worker.execution import captures_of, check_permission, control_route, skipped_layers


@dataclass(frozen=True)
class Prepared:
    """What a load host knows of its run."""

    run: Run
    plan: Plan
    routes: dict[str, Route] = field(repr=False)
    memory: RunMemory
    logins: Mapping[str, LoginConditions] = field(default_factory=dict)
    local_ports: LocalPorts | None = None  # before the first block

    def check_ports(self, parts: Mapping[Variant, HostPart]) -> None:
        """Raises PreflightRefused if its clients would use up the ports of this host."""
        here = {variant: len(part.indices(variant.clients)) for variant, part in parts.items()}
        ports.check(self.plan, self.routes, self.logins, self.local_ports, here)

    def client_bytes(self, parts: Mapping[Variant, HostPart]) -> int:
        """What each client may take. Raises PreflightRefused if they need more to start than there
        is.
        """
        here = _here(parts)
        if (needed := bytes_of(here)) > self.memory.allowed_bytes:
            raise PreflightRefused(
                f"memory: its clients need about {needed // MIB} MiB, allowed are"
                f" {self.memory.allowed_bytes // MIB} MiB ({self.memory.rule}); choose fewer clients or more load"
                " hosts"
            )
        return self.memory.share_of(here)


def near_routes(run: Run) -> dict[str, Route]:
    """The run's routes without delay, with the login that this host resolves. Where production is
    only asked for pages, a route to the database too.
    """
    names = dict.fromkeys(apart(name)[0] for name in Definition.from_json(run.definition).routes)
    if run.database is None:
        raise CredentialError(f"database: {run.database_name} was deleted")
    routes = credentials.resolve(run.database, names)
    if run.database.production and all(route.url for route in routes.values()):
        routes |= control_route(run.database)
    return routes


@contextmanager
def prepared(run: Run, skipped: list[LeftOut], near: Mapping[str, Route]) -> Iterator[Prepared]:
    """The preparation for a run over these routes, whose relays last as long as the context. Raises a
    PgperfError with what this host lacks.
    """
    settings = get_settings()
    _check_permission(run)
    with_cookies = page_sessions.found(run, Definition.from_json(run.definition))
    definition = web_origin.asked_there(with_cookies, near.values())
    plan = make_plan(definition, skipped)
    _check_layers(plan, settings.BUILD_DIR, settings.programs)
    memory = RunMemory.now(settings.RUN_MEMORY_MB)
    with longer(near, dict.fromkeys([*definition.routes, *near])) as routes:
        assert run.database
        production = run.database.production
        guarded = guardrails.apply(plan, routes, production, run.database.allow_fixtures).routes
        captured, logins = _captured(plan, guarded, memory, production), _logins(plan, guarded)
        yield Prepared(run, captured, guarded, memory, logins, LocalPorts.read())


def _check_permission(run: Run) -> None:
    """The owner has checked the same; a forged row must not make load here."""
    check_permission(run)
    definition = Definition.from_json(run.definition)
    query_access.check((work.query for work in definition.workloads), permissions.requester(run))


def _check_layers(plan: Plan, build_dir: str, interpreters: Mapping[str, str]) -> None:
    """Raises LayerUnavailable if this host cannot run a variant that it has to."""
    hosted = [variant for variant in plan.variants if variant.hosts]
    for each in skipped_layers(plan.definition, build_dir, interpreters):
        if any(each.covers(variant) for variant in hosted):
            raise LayerUnavailable(f"{each.name} cannot run here: {each.reason}")


def _logins(plan: Plan, routes: Mapping[str, Route]) -> dict[str, LoginConditions]:
    """How the clients that reconnect from load hosts log in."""
    hosted = [variant for variant in plan.variants if variant.hosts and layers.connects(variant.layer)]
    names = {each.route for each in hosted if ports.uses_ports(each, routes[each.route])}
    return {name: authentication.conditions(routes[name]) for name in sorted(names)}


def _captured(plan: Plan, routes: Mapping[str, Route], memory: RunMemory, production: bool) -> Plan:
    """The plan with the statements of the site's workloads as this host captures them.

    Raises PageRefused for a page that production may not be asked for.
    """
    pages = production_pages.requested(plan, production)
    if not (pages or statements.are_captured(plan)):
        return plan
    captures = captures_of(plan, routes, memory.client_bytes(plan), plan.skipped)
    production_pages.check(pages, captures)
    return replace(plan, definition=statements.filled(plan.definition, captures))


def _here(parts: Mapping[Variant, HostPart]) -> list[Variant]:
    """The variants with processes of their own, with the clients that are here."""
    return [
        replace(variant, clients=len(parts[variant].indices(variant.clients))) for variant in sharing(parts)
    ]
