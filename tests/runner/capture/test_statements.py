"""Capture from the wire: real PostgreSQL, the example site's own settings in clients of their own."""

import os
from dataclasses import replace
from struct import pack
from typing import Any

import pytest

from pgperf.core import sql_parameters
from pgperf.core.exceptions import ClientFailed, InvalidDefinition
from pgperf.core.protocol import Slice, SliceReply, Spec, Statement, encode
from pgperf.core.records import Definition, LeftOut, Route, WorkloadDefinition
from pgperf.runner.capture import statements as module
from pgperf.runner.capture.pg_messages import ExecutedStatement
from pgperf.runner.capture.statements import CaptureSettings
from pgperf.runner.capture.wire_proxy import RecordedOperation
from pgperf.runner.client_spec import process_environment, spec
from pgperf.runner.plan import make_plan

#: Only so that the tests' own database is made; the books in it are the module's.
pytestmark = pytest.mark.django_db
SITE_SETTINGS = "tests.site_settings"
LAYERS = ("libpq", "psycopg2", "psycopg", "django_cursor", "django_orm")
Routes = dict[str, Route]


def definition(work: WorkloadDefinition, **changes: Any) -> Definition:
    return replace(Definition("test", (work,), LAYERS, ("tcp",)), **changes)


def of(name: str, *args: Any) -> WorkloadDefinition:
    return WorkloadDefinition(name.replace(".", "-"), "", args, orm=name)


def captured(work: WorkloadDefinition, site: CaptureSettings, **changes: Any) -> module.Capture:
    return module.captured(definition(work, **changes), work, site, ())


def test_a_get_by_key_is_one_statement_that_every_layer_repeats(started_site: CaptureSettings) -> None:
    found = captured(of("books.by_isbn", "9790000000042"), started_site)
    assert found.refusal == ""
    assert found.differences == ()
    assert found.bound
    (statement,) = found.workload.statements
    assert statement.args == ["9790000000042"]
    assert statement.literal.endswith("""WHERE "books_book"."isbn" = '9790000000042' LIMIT 21""")
    assert found.work.rows == (1,)
    assert found.work.texts[0].endswith('WHERE "books_book"."isbn" = ? LIMIT ?')


def test_the_json_of_a_capture_contains_no_value(site: CaptureSettings) -> None:
    found = captured(of("books.page", "the", 1990), site, layers=("libpq", "django_orm"))
    assert found.work.rows == (25,)
    assert "1990" in found.workload.statements[0].literal
    for told in (found.to_json(), found, found.workload, definition(found.workload).to_json()["workloads"]):
        assert "LIKE UPPER('%the%')" not in repr(told)
        assert "statements=" not in repr(told)
    assert "1990" not in repr(found.to_json())


def test_a_prefetch_reads_the_same_rows_in_fewer_statements(site: CaptureSettings) -> None:
    loop = captured(of("books.authors_one_by_one"), site)
    cure = captured(of("books.authors_prefetched"), site)
    assert len(loop.work.texts) == 21
    assert len(cure.work.texts) == 2
    assert sum(loop.work.rows) == sum(cure.work.rows) > 40
    assert loop.refusal == cure.refusal == ""
    assert loop.differences == cure.differences == ()
    assert [len(s.args or []) for s in cure.workload.statements] == [0, 20]


def test_a_query_without_code_is_captured_too(site: CaptureSettings) -> None:
    query = {
        "model": "books.Book",
        "fetch": "list",
        "lookup": {"year__gte": 2000},
        "limit": 7,
        "ordering": ["isbn"],
    }
    found = captured(WorkloadDefinition("form", "", query=query), site, layers=("libpq", "django_orm"))
    assert found.refusal == ""
    assert found.work.rows == (7,)


def test_separate_arguments_are_captured_from_the_extended_protocol(site: CaptureSettings) -> None:
    work = of("books.by_isbn", "9790000000042")
    found = captured(work, site, modes=("simple", "prepared"))
    assert found.refusal == ""
    assert [(each.layer, each.mode) for each in found.differences] == [("psycopg2", "prepared")]
    (statement,) = found.workload.statements
    assert statement.numbered.endswith('"isbn" = $1 LIMIT 21')
    assert statement.args_text == ["9790000000042"]


def test_values_without_a_json_form_are_replayed_as_sent(site: CaptureSettings) -> None:
    found = captured(of("tests.dated"), site)
    assert found.refusal == ""
    assert not found.bound
    (statement,) = found.workload.statements
    assert statement.args is None
    assert "2026-11-21" in statement.literal
    assert found.differences == ()


def test_only_libpq_replays_separate_values_without_a_json_form(site: CaptureSettings) -> None:
    """A driver that was given the text with its values would send a simple query, or one without
    arguments.
    """
    drivers = ("psycopg", "psycopg_async", "asyncpg", "django_cursor")
    found = captured(of("tests.dated"), site, layers=("libpq", *drivers), modes=("extended",))
    assert found.refusal == ""
    assert found.workload.statements[0].args_text == ["2026-11-21"]
    assert {each.layer for each in found.differences} == set(drivers)
    assert all(
        "args: mode extended" in each.reason and "2026" not in each.reason for each in found.differences
    )


@pytest.mark.parametrize("layer", ["libpq", "psycopg", "psycopg_async", "asyncpg", "django_cursor"])
@pytest.mark.parametrize("mode", ["simple", "extended", "prepared"])
def test_each_mode_sends_its_own_messages(started_site: CaptureSettings, layer: str, mode: str) -> None:
    if (layer, mode) == ("asyncpg", "simple"):
        pytest.skip("asyncpg has no mode simple")
    work = WorkloadDefinition("plain", "SELECT %s::text", ("a value",))
    plain = definition(replace(work, statements=tuple(sql_parameters.statements(work.sql, work.args))))
    with module._behind_proxy(plain, plain.workloads[0], layer, mode, started_site) as (client, proxy):
        proxy.reset()
        client.send(module._ONCE)
        client.read_bytes(client.expect(SliceReply, 10).nbytes, 10)
        (executed,) = proxy.recorded().executed
    assert executed.simple == (mode == "simple")
    assert executed.params == (() if mode == "simple" else (b"a value",))


def test_statements_that_no_client_can_read_leave_the_orm_to_be_measured(
    site: CaptureSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line of a client's order holds 4 MiB, and the order of the ORM lacks what others send."""
    work = of("books.authors_one_by_one")
    found = captured(work, site)
    assert found.refusal == ""
    size = len(encode(Spec(statements=list(found.workload.statements))))
    monkeypatch.setattr(module, "_MOST_BYTES", size - 1)
    assert "MiB in a client's order" in captured(work, site).refusal
    variants = make_plan(definition(found.workload)).variants
    orders = {
        each.layer: spec(definition(found.workload), each, Route("tcp", "h", 1, "d", "u", ""), "x", True, 0)
        for each in variants
    }
    assert orders["django_orm"].statements == []
    assert {len(each.statements) for name, each in orders.items() if name != "django_orm"} == {21}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (
            "tests.counting",
            "two operations did not send the same (statement 1 has other values each time: SELECT",
        ),
        ("tests.growing", "two operations did not send the same ("),
        ("tests.atomic", "statement 1 of 3 controls transactions or the session: BEGIN"),
        ("tests.silent", "the operation sends no statement once it is warm"),
        ("tests.several", "statement 1 of 1 holds several statements: SELECT ?; SELECT ?"),
        ("tests.reconnecting", "the operation uses several connections to the database"),
    ],
)
def test_a_refused_capture_measures_only_the_orm_with_the_reason(
    site: CaptureSettings, name: str, words: str
) -> None:
    found = captured(of(name), site)
    assert words in found.refusal
    assert "4711" not in found.refusal
    plan = make_plan(definition(found.workload), found.skipped())
    assert {variant.layer for variant in plan.variants} == {"django_orm"}
    assert plan.skipped == found.skipped()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (
            "tests.writing",
            'tests.writing: the server refused its UPDATE of "books_book": pgperf calls it in read-only sessions.'
            " Register a callable that only reads",
        ),
        (
            "tests.elsewhere",
            "this workload reached the alias 'other' of DATABASES, but only 'default' is measured",
        ),
        ("tests.failing", "ValueError in site_workloads.py, line"),
        ("tests.bad_value", "invalid input syntax for type integer: ?"),
        ("tests.missing", "registered are: books.authors_one_by_one"),
    ],
)
def test_the_error_of_a_failed_operation_contains_no_values(
    site: CaptureSettings, name: str, words: str
) -> None:
    with pytest.raises(ClientFailed) as failure:
        captured(of(name), site)
    assert words in str(failure.value)
    assert "4711" not in str(failure.value)


def test_without_settings_the_site_cannot_be_set_up(
    started_site: CaptureSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DJANGO_SETTINGS_MODULE")
    with pytest.raises(ClientFailed, match="no DJANGO_SETTINGS_MODULE"):
        captured(of("books.by_isbn", "1"), started_site)


def test_a_layer_with_different_work_is_skipped_with_the_difference(site: CaptureSettings) -> None:
    work = of("books.by_isbn", "9790000000042")
    found = module.capture(definition(work), work, site)
    more = replace(found, work=module.OperationWork(found.work.texts * 2, (1, 1)))
    other_rows = replace(found, work=module.OperationWork(found.work.texts, (3,)))
    for wrong, words in ((more, "1 statements instead of 2"), (other_rows, "1 rows instead of 3")):
        why = module._difference_of(definition(work), wrong, "libpq", "simple", site)
        assert why == f"it does not do the same work: {words}"
    broken = replace(found.workload, statements=(Statement(sql="SELECT no", args=[], literal="SELECT no"),))
    why = module._difference_of(definition(work), replace(found, workload=broken), "psycopg", "simple", site)
    assert why.startswith("it cannot run the captured statements: ")


def test_one_layer_of_one_workload_can_be_left_out() -> None:
    work, other = WorkloadDefinition("a", "", orm="x.a"), WorkloadDefinition("b", "", orm="x.b")
    left = LeftOut(workload="a", layer="libpq", reason="why")
    found = module.Capture(work, module.OperationWork((), ()), differences=(left,))
    plan = make_plan(definition(work, workloads=(work, other)), found.skipped())
    assert ("a", "libpq") not in {(v.workload, v.layer) for v in plan.variants}
    assert ("b", "libpq") in {(v.workload, v.layer) for v in plan.variants}


def test_only_the_site_layers_get_the_site_environment(started_site: CaptureSettings) -> None:
    work = of("books.by_isbn", "1")
    assert process_environment(work, "libpq") is None
    assert process_environment(WorkloadDefinition("plain", "SELECT 1"), "django_orm") is None
    around = process_environment(work, "django_cursor")
    assert around
    assert around.directory == os.getcwd()
    assert "DJANGO_SETTINGS_MODULE" in around.environment
    assert not {"PGHOST", "PGPASSWORD"} & set(around.environment)


def query(text: str) -> ExecutedStatement:
    return ExecutedStatement(text, simple=True)


@pytest.mark.parametrize(("operation_s", "lead_ins"), [(0.001, [0, 19]), (2.9, [0, 9]), (29.0, [0])])
def test_a_slow_operation_is_warmed_up_less_often(
    monkeypatch: pytest.MonkeyPatch, operation_s: float, lead_ins: list[int]
) -> None:
    now, asked = 0.0, []

    def run(_client: object, operations: Slice) -> None:
        nonlocal now
        asked.append(operations.lead_in_ops)
        now += operation_s * (operations.lead_in_ops + operations.count)

    monkeypatch.setattr(module, "_run", run)
    monkeypatch.setattr(module.time, "monotonic", lambda: now)
    module._warm_up(object())  # type: ignore[arg-type]
    assert asked == lead_ins


def test_a_difference_is_shown_with_its_values_masked() -> None:
    first = [query("SELECT 'secret-1'"), query("SELECT a FROM t WHERE b = 7")]
    assert module.difference(first, list(first)) == ""
    assert module.difference(first, [query("SELECT 'secret-2'"), first[1]]) == (
        "two operations did not send the same (statement 1 has other values each time: SELECT ?)"
    )
    assert module.difference(first, first[:1]) == (
        "two operations did not send the same (2 statements, then 1; statement 2 is once: "
        "SELECT a FROM t WHERE b = ?; and then: nothing)"
    )


@pytest.mark.parametrize(
    ("value", "oid", "text"),
    [
        (b"\0\0\0\7", 23, "7"), (b"\xff\xff", 21, "-1"), (b"\0" * 7 + b"\1", 20, "1"), (b"\1", 16, "t"),
        (b"\0", 16, "f"), (b"\x40\x09\x21\xfb\x54\x44\x2d\x18", 701, "3.141592653589793"), ("ä".encode(), 25, "ä"),
        (pack("!i", 9821), 1082, "2026-11-21"), (pack("!i", -730119), 1082, "0001-01-01"),
        (pack("!q", 1_500_000), 1114, "2000-01-01 00:00:01.500000"),
        (pack("!q", -1_000_000), 1184, "1999-12-31 23:59:59+00"),
        (bytes(range(16)), 2950, "00010203-0405-0607-0809-0a0b0c0d0e0f"),
    ],
)  # fmt: skip
def test_binary_parameters_are_read_as_text(value: bytes, oid: int, text: str) -> None:
    assert module.as_text(value, 1, oid) == text


@pytest.mark.parametrize(
    ("value", "oid"),
    [
        (b"\0" * 16, 1186),
        (b"\0" * 3, 23),
        (b"\x7f\xff\xff\xff", 1082),
        (b"\x7f" + b"\xff" * 7, 1184),
        (b"x", 2950),
    ],
)
def test_an_unknown_binary_parameter_is_refused(value: bytes, oid: int) -> None:
    """Another type, another length, an infinite date."""
    with pytest.raises(InvalidDefinition, match=f"number {oid} goes in binary format"):
        module.as_text(value, 1, oid)
    assert module.as_text(None, 1, oid) is None


def test_a_trace_that_differs_from_the_wire_is_ignored() -> None:
    heard = RecordedOperation((query("SELECT 1"),), (1,))
    statements, bound = module.merged(heard, (), [Statement(sql="SELECT %s", args=[2])])
    assert not bound
    assert statements[0].literal == "SELECT 1"
    statements, bound = module.merged(heard, (), [Statement(sql="SELECT %s", args=[1])])
    assert bound
    assert statements[0].args == [1]


def test_layers_beside_the_ladder_replay_the_statements(site: CaptureSettings) -> None:
    work = of("books.authors_prefetched")
    others = ("asyncpg", "psycopg_async", "django_cursor_psycopg2", "django_orm_psycopg2")
    lacking = [LeftOut(layer="asyncpg", mode="simple", reason="no mode simple")]
    lacking += [LeftOut(layer=name, mode="extended", reason="no") for name in others[2:]]
    found = module.captured(
        definition(work, layers=others, modes=("simple", "extended")), work, site, lacking
    )
    assert found.refusal == ""
    assert found.differences == ()
    assert found.workload.statements[1].arg_oids
