"""Layers that have no TLS because their libpq is built without it: found by letting their clients
connect.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pgperf.core import layers, protocol
from pgperf.core.exceptions import ClientFailed
from pgperf.core.records import Definition, LeftOut, Route, WorkloadDefinition
from pgperf.install import launch
from pgperf.runner import authentication, client_spec
from pgperf.runner.capture.statements import CaptureSettings
from pgperf.runner.client_process import ClientProcess

_TIMEOUT_S = 30.0
#: A client runs one operation before it is ready. Nothing of the site's own runs here: routes have no
#: read-only sessions yet. Layers above the cursor have its driver.
_PROBE = WorkloadDefinition("tls", "SELECT 1")
_DEMANDS = ("require", "verify-ca", "verify-full")
#: What every libpq that lacks it says, before it connects anywhere.
_LACKING = "SSL support is not compiled in"
_REASON = (
    "its libpq is built without TLS, which route {route} demands; use one that has it (Debian: libpq-dev, named in "
    "PGPERF['PG_CONFIG'] for the C client)"
)


def refusals(
    definition: Definition, routes: Mapping[str, Route], settings: CaptureSettings, skipped: Sequence[LeftOut]
) -> list[LeftOut]:
    """The layers without TLS for routes that require it, if not `skipped` already.

    Other errors surface in the run.
    """
    demanding = [route for name, route in routes.items() if route.sslmode in _DEMANDS and not route.url]
    if not demanding:
        return []
    lacking = [
        layer for layer in definition.layers if _lacks(definition, layer, demanding[0], settings, skipped)
    ]
    return [
        LeftOut(layer=layer, route=route.name, reason=_REASON.format(route=route.name))
        for layer in lacking
        for route in demanding
    ]


def _lacks(
    definition: Definition, layer: str, route: Route, settings: CaptureSettings, skipped: Sequence[LeftOut]
) -> bool:
    modes = [mode for mode in definition.modes if not any(each.covers_layer(layer, mode) for each in skipped)]
    if not layers.connects(layer) or not modes:
        return False
    probed = layer if layers.runs_statements(layer) else layers.cursor_of(layer)
    variant = client_spec.single(definition, _PROBE, probed, modes[0], route)
    argv = launch.command(probed, settings.build_dir, settings.interpreters)
    plain = replace(definition, workloads=(_PROBE,))
    around = client_spec.process_environment(definition.workloads[0], layer)
    try:
        authentication.check(route)
        with ClientProcess(f"{layer} over {route.name}", argv, route.password, around) as client:
            client.send(client_spec.spec(plain, variant, route, "pgperf-tls", False, client.spawned_ns))
            client.expect(protocol.Ready, _TIMEOUT_S)
    except ClientFailed as error:
        return _LACKING in str(error)
    return False
