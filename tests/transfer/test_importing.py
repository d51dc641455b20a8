"""Import saves all rows or none, and reports the row, column and reason of each problem."""

import json
from typing import Any

import pytest
from django.db import IntegrityError, OperationalError

from pgperf.models import Benchmark, Database, Target, Workload
from pgperf.transfer import files
from pgperf.transfer.columns import MAX_TARGETS, MAX_TARGETS_IN_FILE
from pgperf.transfer.importing import ImportOutcome, Problem, import_table
from pgperf.transfer.resources import (
    BenchmarkResource,
    DatabaseResource,
    DefinitionResource,
    WorkloadResource,
)
from tests import factories
from tests.transfer.permissions import ALL, SomePermissions

pytestmark = pytest.mark.django_db

DATABASE = {"name": "shop", "dbname": "app", "credential": "alias:default"}
BENCHMARK = {
    "name": "mine", "title": "Mine", "workloads": ["site-by-domain"], "layers": ["libpq"], "routes": ["tcp"],
    "modes": ["simple"], "clients": [1],
}  # fmt: skip
WORKLOAD = {"name": "one", "title": "One", "sql": "SELECT 1"}


def give(
    resource: type[DefinitionResource], *rows: dict[str, Any], permissions: Any = ALL, **more: Any
) -> ImportOutcome:
    table = files.read("x.json", json.dumps(rows).encode())
    return import_table(resource(permissions=permissions), table, **more)


def csv(resource: type[DefinitionResource], text: str) -> ImportOutcome:
    return import_table(resource(permissions=ALL), files.read("x.csv", text.encode()))


def problems(outcome: ImportOutcome) -> list[tuple[int | None, str]]:
    assert outcome.changes == []
    return [(problem.row, problem.field) for problem in outcome.problems]


def test_counts_new_changed_and_unchanged_rows() -> None:
    benchmark = factories.make_benchmark(title="Old", description="kept")
    row = {"name": benchmark.name, "title": "New"}
    outcome = give(BenchmarkResource, BENCHMARK, row)
    assert [(change.row.name, change.new) for change in outcome.changes] == [  # type: ignore[attr-defined]
        ("mine", True),
        (benchmark.name, False),
    ]
    assert outcome.changes[1].fields == ["title"]
    benchmark.refresh_from_db()
    assert (benchmark.title, benchmark.description) == ("New", "kept")
    assert give(BenchmarkResource, BENCHMARK, row) == ImportOutcome(same=2)


def test_one_wrong_row_prevents_the_import() -> None:
    factories.make_benchmark()
    wrong = {**BENCHMARK, "name": "wrong", "blocks": 101, "layers": ["nonsense"]}
    outcome = give(BenchmarkResource, BENCHMARK, wrong)
    assert problems(outcome) == [(2, "layers"), (2, "blocks")]
    assert "Choose from: libpq" in outcome.problems[0].message
    assert not Benchmark.objects.filter(name__in=("mine", "wrong")).exists()


@pytest.mark.parametrize("second", [None, "other"])
def test_files_of_the_first_release_import(second: str | None) -> None:
    factories.make_benchmark()
    Workload.objects.create(name="other", title="Other", sql="SELECT 1")
    older = {name: value for name, value in BENCHMARK.items() if name != "workloads"}
    outcome = give(BenchmarkResource, {**older, "workload": "site-by-domain", "compared_with": second})
    assert not outcome.problems
    names = [row.name for row in Benchmark.objects.get(name="mine").workloads]
    assert names == ["site-by-domain", *([second] if second else [])]


def test_the_order_of_workloads_is_imported_and_a_change_of_it_is_one() -> None:
    factories.make_benchmark()
    names = ["zebra", "site-by-domain", "ant"]
    for name in ("zebra", "ant"):
        Workload.objects.create(name=name, title=name, sql="SELECT 1")
    for order in (names, names[::-1], names[1:]):
        outcome = give(BenchmarkResource, {**BENCHMARK, "workloads": order})
        assert [change.row.name for change in outcome.changes] == ["mine"]
        assert [row.name for row in Benchmark.objects.get(name="mine").workloads] == order
        assert give(BenchmarkResource, {**BENCHMARK, "workloads": order}).same == 1


def test_a_dry_run_saves_nothing() -> None:
    factories.make_benchmark()
    outcome = give(BenchmarkResource, BENCHMARK, dry_run=True)
    assert [change.new for change in outcome.changes] == [True]
    assert not Benchmark.objects.filter(name="mine").exists()


@pytest.mark.parametrize(
    ("changed", "field", "says"),
    [
        ({"name": "no slug"}, "name", "slug"),
        ({"name": ""}, "name", "blank"),
        ({"name": None}, "name", "Enter text"),
        ({"name": 5}, "name", "Enter text"),
        ({"name": ["a"]}, "name", "Enter text"),
        ({"name": "x" * 61}, "name", "60 characters"),
        ({"name": "nul\0"}, "name", "cannot be stored"),
        ({"title": "half \ud800"}, "title", "cannot be stored"),
        ({"title": {"a": 1}}, "title", "Enter text"),
        ({"title": None}, "title", "Enter text"),
        ({"blocks": "6"}, "blocks", "whole number"),
        ({"blocks": 6.5}, "blocks", "whole number"),
        ({"blocks": True}, "blocks", "whole number"),
        ({"blocks": None}, "blocks", "whole number"),
        ({"blocks": 10**30}, "blocks", "1 to 100"),
        ({"blocks": -1}, "blocks", "1 to 100"),
        ({"clients": [0]}, "clients", "numbers of clients"),
        ({"clients": "[1]"}, "clients", "numbers of clients"),
        ({"clients": [10**400]}, "clients", "numbers of clients"),
        ({"layers": None}, "layers", "null"),
        ({"layers": [["libpq"]]}, "layers", "Choose from"),
        ({"routes": ["Ü"]}, "routes", "route names"),
        ({"placement": ""}, "placement", "blank"),
        ({"placement": "elsewhere"}, "placement", "not a valid choice"),
        ({"workloads": ["nothing"]}, "workloads", "There is no workload 'nothing'"),
        ({"workloads": None}, "workloads", "JSON list"),
        ({"workloads": []}, "workloads", "cannot be blank"),
        ({"workloads": ["site-by-domain"] * 2}, "workloads", "appears twice"),
        ({"workloads": ["x"] * 13}, "workloads", "at most 12"),
        ({"workloads": [7]}, "workloads", "Enter text"),
        ({"database": "nowhere"}, "database", "There is no database"),
        ({"groups": "ops"}, "groups", "JSON list"),
        ({"groups": ["nobody"]}, "groups", "There is no group 'nobody'"),
    ],
)
def test_the_validation_of_the_form_applies(changed: dict[str, Any], field: str, says: str) -> None:
    factories.make_benchmark()
    outcome = give(BenchmarkResource, {**BENCHMARK, **changed})
    assert (1, field) in problems(outcome)
    message = next(problem.message for problem in outcome.problems if problem.field == field)
    assert says in message


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"credential": "hunter2"}, "credential"),
        ({"credential": "env:HOME"}, "credential"),
        ({"credential": "file:../../etc/passwd"}, "credential"),
        ({"dbname": "host=evil dbname=x"}, "dbname"),
        ({"dbname": "postgresql://evil/x"}, "dbname"),
        ({"user": "a=b"}, "user"),
        ({"password": "hunter2"}, "'password'"),
        ({"options": "-c x=y"}, "'options'"),
        ({"production": "false"}, "production"),
        ({"production": 1}, "production"),
        ({"targets": None}, "targets"),
        ({"targets": {}}, "targets"),
        ({"targets": ["tcp"]}, "targets"),
        ({"targets": [{"route": "tcp"}]}, "targets"),
        ({"targets": [{"route": "tcp", "host": "a,b"}]}, "targets"),
        ({"targets": [{"route": "tcp", "host": "a", "port": 0}]}, "targets"),
        ({"targets": [{"route": "tcp", "host": "a", "port": "5432"}]}, "targets"),
        ({"targets": [{"route": "tcp", "host": "a", "sslmode": "off"}]}, "targets"),
        ({"targets": [{"route": "tcp", "host": "a", "password": "hunter2"}]}, "targets"),
        ({"targets": [{"route": "tcp", "host": "a", "id": 1}]}, "targets"),
        ({"targets": [{"route": "tcp", "host": "a"}, {"route": "tcp", "host": "b"}]}, "targets"),
    ],
)
def test_connection_settings_are_validated(changed: dict[str, Any], field: str) -> None:
    outcome = give(DatabaseResource, {**DATABASE, **changed})
    assert problems(outcome) == [(1, field)]
    assert "hunter2" not in outcome.problems[0].message
    assert not Database.objects.exists()


def test_the_error_names_the_wrong_target() -> None:
    targets = [{"route": "a", "host": "x"}, {"route": "b", "host": "x", "port": 70000}]
    outcome = give(DatabaseResource, {**DATABASE, "targets": targets})
    assert outcome.problems[0].message.startswith("Target 2, port: ")


@pytest.mark.parametrize("more", [0, 1])
def test_a_file_has_a_limit_of_targets(more: int) -> None:
    full = [{"route": f"r{at}", "host": "h"} for at in range(MAX_TARGETS)]
    databases, rest = divmod(MAX_TARGETS_IN_FILE, MAX_TARGETS)
    rows = [{**DATABASE, "name": f"d{at}", "targets": full} for at in range(databases)]
    outcome = give(DatabaseResource, *rows, {**DATABASE, "name": "last", "targets": full[: rest + more]})
    assert [problem.message for problem in outcome.problems] == more * [
        f"The file has more than {MAX_TARGETS_IN_FILE} targets: split it."
    ]
    assert Database.objects.count() == (0 if more else databases + 1)


def test_omitted_targets_are_removed() -> None:
    targets = [{"route": "tcp", "host": "127.0.0.1"}, {"route": "socket", "host": "/run/x", "enabled": False}]
    give(DatabaseResource, {**DATABASE, "targets": targets})
    database = Database.objects.get()
    first = database.targets.get(route="tcp")
    assert (first.port, first.sslmode, first.pooler) == (5432, "prefer", "")
    outcome = give(
        DatabaseResource, {"name": "shop", "targets": [{"route": "tcp", "host": "127.0.0.1", "port": 6543}]}
    )
    assert outcome.changes[0].fields == ["targets"]
    assert list(database.targets.values_list("pk", "port")) == [(first.pk, 6543)]
    assert give(DatabaseResource, {"name": "shop", "notes": "x"}).changes[0].fields == ["notes"]
    assert database.targets.count() == 1


def test_wrong_targets_change_nothing() -> None:
    database = factories.make_database()
    before = list(database.targets.values())
    wrong = {"name": "demo", "targets": [{"route": "tcp", "host": "h"}], "dbname": ""}
    assert problems(give(DatabaseResource, wrong)) == [(1, "dbname")]
    assert list(database.targets.values()) == before


class TestColumns:
    def test_the_name_is_required(self) -> None:
        assert problems(give(WorkloadResource, {"title": "x"})) == [(None, "name")]
        assert problems(give(WorkloadResource, WORKLOAD, {"title": "x"})) == [(2, "name")]
        assert problems(csv(WorkloadResource, "name,title,sql\n,x,SELECT 1\n")) == [(2, "name")]

    def test_an_unknown_column_gives_the_known_ones(self) -> None:
        outcome = give(WorkloadResource, WORKLOAD, {**WORKLOAD, "pk": 1})
        assert problems(outcome) == [(2, "'pk'")]
        assert "Use one of name, title, sql" in outcome.problems[0].message
        assert problems(give(WorkloadResource, {"id": 3, **WORKLOAD})) == [(1, "'id'")]
        assert problems(csv(WorkloadResource, "name,<b>\na,b\n")) == [(None, "'<b>'")]

    def test_the_list_of_unknown_columns_is_limited(self) -> None:
        rows = [{"name": "x", **{f"c{row}-{at}": 1 for at in range(90)}} for row in range(100)]
        assert len(give(WorkloadResource, *rows).problems) == 20

    def test_a_duplicate_name_is_refused(self) -> None:
        outcome = give(WorkloadResource, WORKLOAD, {**WORKLOAD, "title": "Other"})
        assert outcome.problems == [Problem(2, "name", "'one' is already in row 1.")]
        assert "already in row 2" in csv(WorkloadResource, "name\none\none\n").problems[-1].message


class TestSpreadsheet:
    def test_text_is_converted_to_the_type_of_the_field(self) -> None:
        text = (
            "name,title,workload,layers,routes,modes,clients,blocks,database\n"
            'mine,\'=1+1,site-by-domain,"[""libpq""]","[""tcp""]","[""simple""]","[1, 8]",7,\n'
        )
        factories.make_benchmark()
        assert csv(BenchmarkResource, text).problems == []
        made = Benchmark.objects.get(name="mine")
        assert (made.title, made.clients, made.blocks, made.database) == ("=1+1", [1, 8], 7, None)

    def test_an_empty_cell_is_the_default(self) -> None:
        csv(DatabaseResource, "name,dbname,credential,user,production,notes\nshop,app,alias:default,,,\n")
        made = Database.objects.get()
        assert (made.user, made.production, made.notes) == ("", False, "")

    @pytest.mark.parametrize(
        ("column", "cell", "says"),
        [
            ("production", "maybe", "true or false"),
            ("production", "2", "true or false"),
            ("targets", "[", "invalid JSON"),
            ("targets", "[" * 100_000, "nested"),  # deeper than any Python reads
            ("targets", '"[[[[[[[[[[[[]]]]]]]]]]]]"', "nested deeper"),
            ("targets", "tcp", "invalid JSON"),
            ("targets", "1", "JSON list"),
            ("credential", "", "blank"),
        ],
    )
    def test_a_value_of_the_wrong_type_is_refused(self, column: str, cell: str, says: str) -> None:
        outcome = csv(DatabaseResource, f"name,dbname,{column}\nshop,app,{cell}\n")
        assert problems(outcome)[0][0] == 2
        assert any(problem.field == column and says in problem.message for problem in outcome.problems)

    def test_deeply_nested_json_is_refused(self) -> None:
        deep = "[" * 60 + "]" * 60
        assert problems(give(WorkloadResource, {**WORKLOAD, "args": json.loads(deep)})) == [(1, "args")]


class TestPermissions:
    @pytest.mark.parametrize(
        ("without", "row"),
        [("add", {**DATABASE, "name": "other"}), ("change", {"name": "demo", "notes": "x"})],
    )
    def test_each_row_requires_its_permission(self, without: str, row: dict[str, Any]) -> None:
        factories.make_database()
        permissions = SomePermissions(without=[(without, "Database")])
        outcome = give(DatabaseResource, row, permissions=permissions)
        assert outcome.problems == [Problem(1, "", outcome.problems[0].message)]
        assert "You do not have permission" in outcome.problems[0].message
        assert give(DatabaseResource, row).problems == []

    @pytest.mark.parametrize(
        ("without", "targets"),
        [
            ("add", [{"route": "new", "host": "h"}, *[{"route": r, "host": "h"} for r in factories.ROUTES]]),
            ("delete", []),
            ("change", [{"route": route, "host": "elsewhere"} for route in factories.ROUTES]),
        ],
    )
    def test_targets_require_their_permission(self, without: str, targets: list[Any]) -> None:
        factories.make_database()
        permissions = SomePermissions(without=[(without, "Target")])
        before = list(Target.objects.values())
        assert problems(
            give(DatabaseResource, {"name": "demo", "targets": targets}, permissions=permissions)
        ) == [(1, "targets")]
        assert list(Target.objects.values()) == before

    def test_readonly_fields_stay(self) -> None:
        factories.make_database()
        permissions = SomePermissions(readonly_fields=["production"])
        for row in ({**DATABASE, "production": True}, {"name": "demo", "production": True}):
            assert problems(give(DatabaseResource, row, permissions=permissions)) == [(1, "production")]
        for row in ({**DATABASE, "production": False}, {"name": "demo", "production": False, "notes": "x"}):
            assert give(DatabaseResource, row, permissions=permissions).problems == []

    def test_an_unchanged_row_requires_no_permission(self) -> None:
        factories.make_database()
        nothing = SomePermissions(without=[("change", "Database"), ("add", "Database")])
        assert give(DatabaseResource, {"name": "demo"}, permissions=nothing) == ImportOutcome(same=1)

    def test_hidden_rows_cannot_be_changed_or_named(self) -> None:
        factories.make_database()
        factories.make_benchmark()
        table = files.read("x.json", json.dumps([{**DATABASE, "name": "demo"}]).encode())
        unseen = DatabaseResource(Database.objects.exclude(name="demo"), ALL)
        assert problems(import_table(unseen, table)) == [(1, "name")]
        outcome = give(
            BenchmarkResource, {**BENCHMARK, "database": "demo"}, permissions=SomePermissions(hidden=["demo"])
        )
        assert problems(outcome) == [(1, "database")]


def test_a_concurrent_save_gives_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def save(self: Workload, **_: Any) -> None:
        raise IntegrityError('duplicate key value violates "secret"')

    monkeypatch.setattr(Workload, "save", save)
    outcome = give(WorkloadResource, WORKLOAD)
    assert outcome.problems == [
        Problem(1, "", "Another user saved the same row at the same time. Try again.")
    ]


def test_a_locked_database_gives_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def save(self: Workload, **_: Any) -> None:
        raise OperationalError("database is locked")

    monkeypatch.setattr(Workload, "save", save)
    assert give(WorkloadResource, WORKLOAD).problems == [
        Problem(1, "", "The site's database is locked or does not answer. Try again.")
    ]


def test_an_unexpected_exception_gives_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def clean(self: Workload) -> None:
        raise ZeroDivisionError("with a value in it")

    monkeypatch.setattr(Workload, "clean", clean)
    assert give(WorkloadResource, WORKLOAD).problems == [
        Problem(1, "", "The row cannot be read (ZeroDivisionError).")
    ]
