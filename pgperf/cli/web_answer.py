"""What a web server says to one request, for `doctor`: sent as the layer http sends its own."""

import os
import re

from pgperf.conf import get_settings
from pgperf.core import protocol
from pgperf.core.exceptions import ClientFailed, LayerUnavailable
from pgperf.core.records import Route
from pgperf.install import launch
from pgperf.runner.client_process import ClientProcess

_LAYER = "http"
_TIMEOUT_S = 60.0
#: For the site's front page, whose body is not of interest.
_PAGE = protocol.Page("/", "HEAD")
#: A status of the site itself, redirects and missing pages included: its server answers.
_ANSWERS = re.compile(r"status [1-4]\d\d\b")


def answer(route: Route) -> str:
    """The status of the answer, in words.

    Raises ClientFailed if none came or the server failed, LayerUnavailable if the layer cannot run.
    """
    settings = get_settings()
    if reason := launch.unavailable_in_all(_LAYER, str(settings.BUILD_DIR), settings.programs):
        raise LayerUnavailable(reason)
    argv = launch.command(_LAYER, str(settings.BUILD_DIR), settings.programs)
    with ClientProcess(route.name, argv) as client:
        client.send(_spec(route, client.spawned_ns))
        try:
            client.expect(protocol.Ready, _TIMEOUT_S)
        except ClientFailed as error:
            if found := _ANSWERS.search(str(error)):
                return f"answers {_PAGE.method} {_PAGE.path} with {found[0]}"
            raise
    return f"answers {_PAGE.method} {_PAGE.path}"


def _spec(route: Route, spawned_ns: int) -> protocol.Spec:
    return protocol.Spec(
        layer=_LAYER,
        host=route.host,
        port=route.port,
        sslrootcert=route.sslrootcert,
        url=route.url,
        page=_PAGE,
        spawned_ns=spawned_ns,
        runner_pid=os.getpid(),
        cold=False,
    )
