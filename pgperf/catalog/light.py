"""The statement that asks a server for next to nothing: a verdict on the server is put to the test by it."""

from pgperf.core.records import Workload

LIGHT = Workload(name="pgperf-light", sql="SELECT 1 AS id", orm="pgperf.light")
