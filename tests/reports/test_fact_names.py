"""The names of a run's facts on a page."""

import pytest

from pgperf.analysis.definition_diff import Difference
from pgperf.reports.fact_names import difference_cells, fact_name


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("python", "Python"),
        ("pgperf", "pgperf"),
        ("slice_ms", "slice length (ms)"),  # as the benchmark's form has it
        ("connection_modes", "connection modes"),
        ("lead_in_ms", "lead in (ms)"),  # no field of the form
        ("workloads.2.other_sql", "workload 2 · second SQL"),
        ("workloads.1.query.lookup", "workload 1 · query · lookup"),
        ("machine.memory_bytes", "machine · memory"),
        ("server.pg_stat_statements.track", "server · pg_stat_statements.track"),
        ("packages.psycopg-binary", "packages · psycopg-binary"),
        ("setting_sources.shared_buffers", "setting sources · shared_buffers"),
        ("layers.django_orm.driver_version", "layers · Django ORM · driver version"),
        ("layers.of_another_version", "layers · of_another_version"),
        ("connections.pgbouncer_tls.scram_iterations", "connections · pgbouncer_tls · SCRAM iterations"),
    ],
)
def test_a_fact_has_the_name_that_people_know(path: str, name: str) -> None:
    assert fact_name(path) == name


@pytest.mark.parametrize(
    ("found", "texts"),
    [
        (Difference("machine.memory_bytes", "25276063744", ""), ["machine · memory", "23.5\xa0GB", "–"]),
        (Difference("machine.hypervisor", "True", "False"), ["machine · hypervisor", "yes", "no"]),
        (Difference("server.jit", "on", "off"), ["server · jit", "on", "off"]),
        (Difference("machine.memory_bytes", "some", "1²"), ["machine · memory", "some", "1²"]),
    ],
)
def test_values_are_as_people_write_them(found: Difference, texts: list[str]) -> None:
    assert [cell.text for cell in difference_cells(found)] == texts
