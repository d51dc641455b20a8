"""Delayed routes of a definition."""

import time

from pgperf.core.records import Route
from pgperf.delay.routes import longer
from pgperf.runner.server.control_connection import ControlConnection


def test_only_delayed_routes_take_longer(routes: dict[str, Route]) -> None:
    near = {"tcp": routes["tcp"]}
    with longer(near, ("tcp", "tcp+40ms")) as found:
        assert found["tcp"] == near["tcp"]
        far = found["tcp+40ms"]
        assert (far.name, far.host, far.dbname) == ("tcp+40ms", "127.0.0.1", near["tcp"].dbname)
        with ControlConnection(far) as monitor:
            begin = time.monotonic()
            assert monitor.query("SELECT 1") == [["1"]]
            # Each way, the relay may be half a millisecond early: by what waking up usually takes.
            assert time.monotonic() - begin >= 0.039
    assert list(found) == ["tcp", "tcp+40ms"]
