"""A trivial statement, with which a test run checks a verdict on the server."""

from pgperf.core.records import WorkloadDefinition

LIGHT = WorkloadDefinition(name="pgperf-light", sql="SELECT 1 AS id", orm="pgperf.light")
