"""Starts the clients of a block, connected and pinned, and ends them."""

import random
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import pgperf
from pgperf.core import layers, protocol
from pgperf.core.exceptions import ClientFailed
from pgperf.core.host_part import WHOLE, HostPart
from pgperf.core.limits import STATEMENT_TIMEOUT_S
from pgperf.core.records import Definition, Route, Variant
from pgperf.install import launch
from pgperf.install.environments import other_version
from pgperf.runner import authentication
from pgperf.runner.client_group import ClientGroup, application_of
from pgperf.runner.client_process import ClientProcess, goodbye, kill
from pgperf.runner.client_spec import process_environment, spec
from pgperf.runner.cpu import placement
from pgperf.runner.cpu.placement import CpuPlacement
from pgperf.runner.environment_places import BlockPlaces, ClientStart
from pgperf.runner.plan import sharing

#: To start and to connect, and for operations that are not slow.
_START_TIMEOUT_S = 60.0
#: Slow operations before `ready`: one, and in a cold start two more and both of the second query.
_READY_OPS, _COLD_OPS = 1, 5
#: How many clients start at the same time. More would slow each other down and exceed their
#: deadlines.
_STARTING = 16


@contextmanager
def started(
    definition: Definition,
    variants: list[tuple[Variant, str]],
    routes: dict[str, Route],
    build_dir: str,
    cold: bool,
    placed: CpuPlacement | None,
    interpreters: Mapping[str, str] = launch.NO_INTERPRETERS,
    memory_bytes: int = 0,
    places: BlockPlaces | None = None,
    part_of: Callable[[Variant], HostPart] = lambda _variant: WHOLE,
    turn: str = "",
) -> Iterator[list[ClientGroup]]:
    """Groups of the variants (each with its application name), connected; ended when the context
    ends.

    With `cold`, the first client of each owner starts alone, pinned from the start, and measures
    its cold phases. All other clients start together and are pinned when they are ready.
    `placed`: None leaves their CPUs to the scheduler. `memory_bytes`: the limit of each client's
    operations, 0 for none. `places`: where the
    environments are, None if there is only the default one. `part_of`: which clients of a variant
    are on this host.

    The owners start in a random order, drawn from the definition's seed and `turn`: processes that
    start earlier have other memory, and may be slower for as long as they live.
    """
    _check_authentication([variant for variant, _ in variants], routes)
    groups = {variant: ClientGroup(variant, name, part=part_of(variant)) for variant, name in variants}
    families = sharing(groups)
    clean = False

    def spawn(group: ClientGroup, cold: bool) -> None:
        start = client_start(definition, group.variant, build_dir, interpreters, places)
        _spawn(group, definition, routes[group.variant.route], start, cold, memory_bytes)

    try:
        owners = [groups[variant] for variant in families]
        random.Random(f"{definition.seed}/start/{turn}").shuffle(owners)
        if cold:
            _start_coldly(owners, lambda group: spawn(group, True), placed)
        _start_together(owners, lambda group: spawn(group, False))
        for group in owners:
            _pin(group, placed)
        for owner, members in families.items():
            for member in members:
                if member != owner:
                    groups[member].share(groups[owner])
        yield list(groups.values())
        clean = True
    finally:
        clients = [client for group in groups.values() if not group.owner for client in group.clients]
        (goodbye if clean else kill)(clients)


def _check_authentication(variants: Sequence[Variant], routes: Mapping[str, Route]) -> None:
    """No client sends its password to a server that asks for it in clear text."""
    for name in dict.fromkeys(variant.route for variant in variants if layers.connects(variant.layer)):
        authentication.check(routes[name])


def _pin(group: ClientGroup, placed: CpuPlacement | None) -> None:
    """Pin the clients that it has."""
    cpus = placed.sides(layers.over_http(group.variant.layer)).clients if placed else None
    for client in group.clients:
        placement.pin(client.pid, cpus)


def _start_coldly(
    groups: list[ClientGroup], spawn: Callable[[ClientGroup], None], placed: CpuPlacement | None
) -> None:
    """Start the first client of each group, one after the other, so that nothing disturbs its cold
    phases.
    """
    for group in groups:
        spawn(group)
        _pin(group, placed)
        _await(group, cold=True)


def _start_together(groups: list[ClientGroup], spawn: Callable[[ClientGroup], None]) -> None:
    """Start all clients that the groups still lack, some at a time."""
    starting: deque[ClientGroup] = deque()
    for group in groups:
        for _ in group.part.indices(group.variant.processes)[len(group.clients) :]:
            if len(starting) == _STARTING:
                _await(starting.popleft())
            spawn(group)
            starting.append(group)
    for group in starting:
        _await(group)


def _spawn(
    group: ClientGroup,
    definition: Definition,
    route: Route,
    start: ClientStart,
    cold: bool,
    memory_bytes: int,
) -> None:
    variant = group.variant
    number = group.part.indices(variant.processes)[len(group.clients)]
    name = application_of(group.application, number, variant.workers)
    client = ClientProcess(variant.label, start.argv, route.password, start.process_environment)
    group.clients.append(client)
    client.send(spec(definition, variant, route, name, cold, client.spawned_ns, memory_bytes))


def _await(group: ClientGroup, cold: bool = False) -> None:
    """Wait until the next of its clients is ready."""
    client = group.clients[len(group.ready)]
    group.ready.append(client.expect(protocol.Ready, start_most_s(group.variant, cold)))
    check_version(client.name, group.ready[-1])


def client_start(
    definition: Definition,
    variant: Variant,
    build_dir: str,
    interpreters: Mapping[str, str],
    places: BlockPlaces | None,
) -> ClientStart:
    """How a client of the variant starts."""
    work = definition.work(variant.workload)
    argv = launch.command(variant.layer, build_dir, interpreters)
    own = ClientStart(argv, process_environment(work, variant.layer))
    return places.start(variant, work, own) if places else own


def start_most_s(variant: Variant, cold: bool) -> float:
    """The time in which a client must be ready, where each operation takes as long as a statement may.

    Its workers run one after the other.
    """
    operations = (_COLD_OPS if cold else _READY_OPS) + variant.workers - 1
    return _START_TIMEOUT_S + operations * STATEMENT_TIMEOUT_S


def check_version(name: str, ready: protocol.Ready) -> None:
    """Raises ClientFailed for a client of another pgperf. One in C says its version by the protocol
    alone.
    """
    if refusal := other_version(ready.versions.get("pgperf", pgperf.__version__)):
        raise ClientFailed(f"{name}: {refusal}")
