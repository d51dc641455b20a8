"""Connects as a client of the site's own workload does: the site's settings, engine and OPTIONS."""

import os
from collections.abc import Mapping
from typing import Any

from pgperf.core import protocol, sql_parameters
from pgperf.core.layers import CURSOR_LAYER
from pgperf.core.records import Route
from pgperf.install import launch
from pgperf.runner import authentication
from pgperf.runner.client_process import ClientProcess, login, site_environment

_TIMEOUT_S = 60.0


def check(route: Route, workload: Mapping[str, Any], application_name: str) -> None:
    """Connect on the alias that the workload uses, and run one statement.

    `workload` has the fields of a Spec that name it: `orm` or `query`. Raises ClientFailed with the
    reason.
    """
    authentication.check(route, application_name)
    argv = launch.command(CURSOR_LAYER, "")
    name = f"the site's Django over {route.name}"
    with ClientProcess(name, argv, route.password, site_environment()) as client:
        client.send(
            protocol.Spec(
                layer=CURSOR_LAYER,
                **login(route),
                **workload,
                site=True,
                application_name=application_name,
                statements=sql_parameters.statements("SELECT 1", ()),
                spawned_ns=client.spawned_ns,
                runner_pid=os.getpid(),
                cold=False,
            )
        )
        client.expect(protocol.Ready, _TIMEOUT_S)
