"""Variants of several environments: their plan, their paths, and whole runs with the fake client."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest

import pgperf
from benchmarks.twin import packages, twin
from pgperf.analysis.summary import summarise
from pgperf.analysis.variant_comparisons import first_kind, pairs
from pgperf.core.client_environment import DEFAULT, PADDING
from pgperf.core.records import LeftOut, WorkloadDefinition
from pgperf.install import environments
from pgperf.install.environments import UsableEnvironment
from pgperf.runner import environment_support
from pgperf.runner.client_process import PACKAGE_ROOT
from pgperf.runner.environment_places import BlockPlaces, ClientStart, EnvironmentPlaces, places
from pgperf.runner.plan import COHORT_SIZE, make_plan, round_order
from pgperf.runner.run import execute
from tests.runner.builders import FAKE_WORK, definition
from tests.runner.test_run import MACHINE, ROUTES, Watcher

BOTH = (DEFAULT, "twin")
OWN = ClientStart([sys.executable, "-m", "pgperf.clients.programs.fake_client"], None)


@pytest.fixture(scope="module")
def usable(tmp_path_factory: pytest.TempPathFactory) -> dict[str, UsableEnvironment]:
    """The default environment and its twin."""
    both = environments.default(), twin(tmp_path_factory.mktemp("environments"))
    return {each.name: UsableEnvironment(each, environments.examine(each)) for each in both}


@pytest.fixture
def links(usable: dict[str, UsableEnvironment]) -> Iterator[EnvironmentPlaces]:
    with places(definition(environments=BOTH), usable) as found:
        assert found
        yield found


class TestPlan:
    def test_each_layer_has_a_variant_in_each_environment(self) -> None:
        plan = make_plan(definition(layers=("libpq", "psycopg", "django_orm"), environments=BOTH))
        assert [v.label for v in plan.variants if not v.control] == [
            "libpq · here", "psycopg · here", "django_orm · here", "psycopg · here · twin", "django_orm · here · twin",
        ]  # fmt: skip
        assert [(each.layer, each.environment) for each in plan.skipped] == [("libpq", "twin")]

    def test_the_first_environment_is_the_baseline_of_the_same_layer_and_route(self) -> None:
        what = definition(layers=("psycopg", "django_orm"), routes=("a", "b"), environments=BOTH)
        plan = make_plan(what)
        found = [
            pair
            for pair in pairs(what, plan.variants, "psycopg")
            if pair[0].differs_in(pair[1]) == {"environment"}
        ]
        assert {(v.layer, v.route, v.environment, base.environment) for v, base in found} == {
            (layer, route, "twin", DEFAULT) for layer in ("psycopg", "django_orm") for route in ("a", "b")
        }

    def test_a_run_stops_when_it_knows_what_the_environment_changes(self) -> None:
        what = definition(layers=("psycopg", "django_orm"), environments=BOTH)
        found = first_kind(what, make_plan(what).variants)
        assert {(v.layer, v.environment, base.environment) for v, base in found} == {
            (layer, "twin", DEFAULT) for layer in ("psycopg", "django_orm")
        }

    def test_a_layer_that_the_first_lacks_is_compared_with_the_next(self) -> None:
        what = definition(layers=("psycopg",), environments=(*BOTH, "third"))
        plan = make_plan(what, [LeftOut(layer="psycopg", environment=DEFAULT, reason="none")])
        (pair,) = [p for p in pairs(what, plan.variants, "psycopg") if not p[0].control]
        assert [each.environment for each in pair] == ["third", "twin"]

    def test_both_sides_of_a_layer_are_close_together_in_every_round(self) -> None:
        plan = make_plan(definition(layers=("psycopg", "django_cursor", "django_orm"), environments=BOTH))
        gaps = []
        for round_ in range(50):
            order = [plan.variants[index] for index in round_order(plan, 0, 0, round_)]
            gaps += [
                abs(order.index(a) - order.index(b))
                for a, b in combinations([v for v in order if not v.control], 2)
                if a.differs_in(b) == {"environment"}
            ]
        assert sum(gaps) / len(gaps) < 2.5  # 3 apart on average in a random order of eight

    def test_both_sides_are_in_one_cohort(self) -> None:
        layers = (
            "psycopg2",
            "psycopg",
            "psycopg_async",
            "asyncpg",
            "django_cursor",
            "django_orm",
            "django_orm_async",
        )
        what = definition(layers=layers, routes=("a",), clients=(1, 2), environments=BOTH)
        plan = make_plan(what)
        assert len(plan.cohorts) > 1
        assert all(len(cohort.variants) <= COHORT_SIZE for cohort in plan.cohorts)
        for variant in plan.variants:
            twin = replace(variant, environment="twin", control=0)
            if variant.environment == DEFAULT and twin in plan.variants:
                shared = [c for c in plan.cohorts if twin in c.variants]
                assert all(replace(variant, control=0) in cohort.variants for cohort in shared)

    def test_a_run_of_the_default_environment_keeps_its_digest_and_labels(self) -> None:
        what = definition()
        assert what.digest() == replace(what, environments=(DEFAULT,)).digest()
        assert what.digest() != replace(what, environments=BOTH).digest()
        assert [v.label for v in make_plan(what).variants] == ["fake · here", "fake · here · control 1"]


class TestPlaces:
    def starts(self, places_: BlockPlaces, work: WorkloadDefinition = FAKE_WORK) -> dict[str, ClientStart]:
        plan = make_plan(definition(environments=BOTH))
        return {v.environment: places_.start(v, work, OWN) for v in plan.variants if not v.control}

    def test_the_sides_swap_paths_of_one_length_from_block_to_block(self, links: EnvironmentPlaces) -> None:
        first, second = (self.starts(links.in_block(block)) for block in (0, 1))
        pythons = [{name: start.argv[0] for name, start in each.items()} for each in (first, second)]
        assert len({len(python) for each in pythons for python in each.values()}) == 1
        ends = [{name: python.split("/")[-3] for name, python in each.items()} for each in pythons]
        assert ends == [{DEFAULT: "00", "twin": "01"}, {DEFAULT: "01", "twin": "00"}]
        assert ends[0] == {
            name: s.argv[0].split("/")[-3] for name, s in self.starts(links.in_block(2)).items()
        }

    def test_each_path_starts_its_own_environment(self, links: EnvironmentPlaces) -> None:
        for block in (0, 1):
            for name, start in self.starts(links.in_block(block)).items():
                code = "import sys; print(sys.prefix)"
                prefix = subprocess.run(
                    [start.argv[0], "-c", code], capture_output=True, text=True
                ).stdout.strip()
                assert os.path.samefile(prefix, links.in_block(block).roots[name])
                assert prefix == str(links.in_block(block).roots[name]), "its packages are at that path too"

    def test_the_size_of_the_variables_changes_by_block_and_side(self, links: EnvironmentPlaces) -> None:
        def sizes(block: int) -> tuple[int, ...]:
            starts = self.starts(links.in_block(block)).values()
            return tuple(
                len(s.process_environment.environment[PADDING]) for s in starts if s.process_environment
            )

        found = [sizes(block) for block in range(20)]
        assert found == [sizes(block) for block in range(20)], "a seed repeats them"
        assert len(set(found)) == 20
        assert {len(set(each)) for each in found} == {2}
        assert max(map(max, found)) < 4096

    def test_only_a_clients_environment_has_site_variables(
        self, links: EnvironmentPlaces, monkeypatch: pytest.MonkeyPatch, usable: dict[str, UsableEnvironment]
    ) -> None:
        monkeypatch.setenv("PGPASSWORD", "hunter2")
        monkeypatch.setenv("SITE_KEY", "hunter2")
        for start in self.starts(links.in_block(0)).values():
            assert start.process_environment
            assert "hunter2" not in str(start.process_environment.environment)
        found = links.in_block(0)
        used = replace(usable["twin"].environment, settings="site.pool", variables={"LD_BIND_NOW": "1"})
        block = BlockPlaces(
            {**usable, "twin": UsableEnvironment(used, usable["twin"].installed)}, found.roots, found.seed
        )
        site = WorkloadDefinition("site", "", orm="books")
        variant = replace(
            make_plan(definition(environments=BOTH)).variants[0], layer="django_orm", environment="twin"
        )
        around = block.start(variant, site, OWN).process_environment
        assert around
        assert around.environment["DJANGO_SETTINGS_MODULE"] == "site.pool"
        assert around.environment["LD_BIND_NOW"] == "1"
        assert around.environment["SITE_KEY"] == "hunter2"
        assert "PGPASSWORD" not in around.environment
        assert not any("site-packages" in path for path in around.environment["PYTHONPATH"].split(os.pathsep))

    @pytest.mark.parametrize(
        ("layer", "argv"),
        [
            ("libpq", ["/usr/lib/pgperf-libpq"]),
            ("pgbench", [sys.executable, "-m", "pgperf.clients.programs.pgbench_client", "/usr/bin/pgbench"]),
            ("psycopg", ["/opt/drivers/bin/python", "-I", "isolated.py", "program"]),
        ],
    )
    def test_a_client_that_the_default_python_does_not_run_starts_as_always(
        self, links: EnvironmentPlaces, layer: str, argv: list[str]
    ) -> None:
        own = ClientStart(argv, None)
        variant = replace(make_plan(definition()).variants[0], layer=layer)
        assert links.in_block(0).start(variant, FAKE_WORK, own) is own

    def test_one_environment_needs_no_paths(self, usable: dict[str, UsableEnvironment]) -> None:
        with places(definition(), usable) as found:
            assert found is None


class TestRuns:
    def test_both_sides_are_measured_in_every_round(self, usable: dict[str, UsableEnvironment]) -> None:
        what, watcher = definition(blocks=2, rounds=2, environments=BOTH), Watcher()
        outcome = execute(make_plan(what), ROUTES, replace(MACHINE, environments=usable), watcher)
        measured = [
            (b.variant.environment, b.block, len(b.slices)) for b in watcher.blocks if not b.variant.control
        ]
        assert sorted(measured) == [(name, block, 2) for name in BOTH for block in (0, 1)]
        assert {b.versions["pgperf"] for b in watcher.blocks} == {pgperf.__version__}
        facts = outcome.environment["environments"]["twin"]
        assert facts["layers"]["fake"]["driver"] == "fake"
        assert facts["packages"] == usable["twin"].installed.packages
        summary = summarise(what, outcome.plan.variants, watcher.blocks, "psycopg")
        (found,) = [row for row in summary["comparisons"] if not row.aa]
        assert (found.variant.environment, found.baseline.environment) == ("twin", DEFAULT)
        assert found.outcome
        assert found.low is not None
        assert {row["environment"] for row in summary["variants"]} == set(BOTH)

    def test_another_pgperf_is_found_at_the_handshake(
        self, usable: dict[str, UsableEnvironment], tmp_path: Path
    ) -> None:
        """As if it was replaced after it had been examined."""
        changed = twin(tmp_path)
        copy = packages(changed) / "pgperf"
        shutil.copytree(
            Path(PACKAGE_ROOT, "pgperf"), copy, ignore=shutil.ignore_patterns("static", "__pycache__")
        )
        (copy / "__init__.py").write_text('__version__ = "0.0.9"\n')
        replaced = {**usable, "twin": UsableEnvironment(changed, usable["twin"].installed)}
        plan = make_plan(definition(environments=BOTH))
        (left,) = environment_support.refusals(plan, ROUTES, replaced)
        assert (left.layer, left.environment) == ("fake", "twin")
        assert "pgperf 0.0.9 is installed there" in left.reason
        rest = make_plan(plan.definition, [left])
        assert {v.environment for v in rest.variants} == {DEFAULT}

    def test_a_twin_answers_the_handshake(self, usable: dict[str, UsableEnvironment]) -> None:
        assert environment_support.refusals(make_plan(definition(environments=BOTH)), ROUTES, usable) == []
        assert environment_support.refusals(make_plan(definition()), ROUTES, {}) == []


def test_a_left_out_environment_is_named() -> None:
    left = LeftOut(layer="psycopg", environment="old", reason="none")
    variant = make_plan(definition(layers=("psycopg",), environments=(DEFAULT, "old"))).variants
    assert left.name == "psycopg · environment old"
    assert [left.covers(each) for each in variant if not each.control] == [False, True]
