"""One statement that reads, or a refusal at the field."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pgperf import catalog
from pgperf.core import sql_parameters, sql_read_only
from pgperf.core.exceptions import InvalidDefinition
from pgperf.core.records import WorkloadDefinition
from pgperf.core.sql_calls import significant
from pgperf.core.sql_lexer import Token, tokens

READS = [
    "SELECT 1",
    "select 1;",
    "  SELECT 1 ; -- the end",
    "(SELECT 1) UNION (SELECT 2)",
    "WITH x AS (SELECT 1) SELECT * FROM x",
    "VALUES (1), (2)",
    "TABLE book",
    "SHOW server_version",
    "/* why */ SELECT 1",
    "/* a /* nested */ comment; */ SELECT 1",
    "SELECT ';' , 'it''s', \"a;b\", \"a\"\"b\"",
    "SELECT $$;COMMIT$$, $a$ ; $$ ; $a$",
    "SELECT E'\\';COMMIT', e'\\\\'",
    "SELECT a$b, c$d$e FROM t",
    "SELECT price FROM lo_prices WHERE nextval = 1",
    "SELECT $1::int, 5 % 2",
    "SELECT %s, '%%s', \"treat\"(1), treat.a FROM treat",
    "SELECT shop.lo_price(1), books.nextval FROM books",
    "SELECT 'pg_advisory_lock(1)'",
    "SELECT 1 -- ; COMMIT",
    "SELECT " + "1," * 20_000 + "1",
    "SELECT 'Größe'",
]
REFUSED = {
    "": "no statement",
    " ; ": "no statement",
    "-- nothing": "no statement",
    "SELECT 1; COMMIT": "one statement",
    "SELECT 1;COMMIT;UPDATE t SET a = 1": "one statement",
    "SELECT 1 /* */ ; /* */ DROP TABLE t": "one statement",
    "SELECT ';' ; SELECT $$;$$": "one statement",
    "SELECT 1;;": "one statement",
    "UPDATE t SET a = 1": "must read",
    "DELETE FROM t": "must read",
    "INSERT INTO t VALUES (1)": "must read",
    "MERGE INTO t USING s ON true WHEN MATCHED THEN DELETE": "must read",
    "TRUNCATE t": "must read",
    "DROP TABLE t": "must read",
    "COPY t TO PROGRAM 'id'": "must read",
    "COPY (SELECT 1) TO PROGRAM 'id'": "must read",
    "copy t from program $$id$$": "must read",
    "BEGIN READ WRITE": "must read",
    "SET statement_timeout = 0": "must read",
    "RESET ALL": "must read",
    "DO $$BEGIN END$$": "must read",
    "CALL p()": "must read",
    "LOCK TABLE t IN ACCESS EXCLUSIVE MODE": "must read",
    "EXPLAIN ANALYZE DELETE FROM t": "must read",
    "PREPARE p AS SELECT 1": "must read",
    "LISTEN x": "must read",
    "/**/COMMIT": "must read",
    "\\shell id": "backslash",
    "\\! id": "backslash",
    "SELECT 1 \\gexec": "backslash",
    "SELECT 1\n\\setshell x id": "backslash",
    "SELECT 'a\\' ; DROP TABLE t --'": "backslash",
    "SELECT 'open": "not closed",
    'SELECT "open': "not closed",
    "SELECT $$open": "not closed",
    "SELECT $a$ open $b$": "not closed",
    "SELECT E'open\\'": "not closed",
    "/* open /* */ SELECT 1": "not closed",
    "SELECT 1 -- ends at a carriage return\r; DROP TABLE t": "one statement",
    "SELECT 1 AS a\u00a0$$; DROP TABLE t; --$$": "one statement",
    "SELECT U&'\\0061'": "plain text",
    'SELECT U&"lo\\005fcreat"(-1)': "plain text",
    "SELECT 1\x00": "NUL",
    "SELECT '\ud800'": "Unicode",
    "SELECT '" + "x" * 65536 + "'": "longer than",
    "SELECT lo_creat(-1)": r"lo_creat\(\)",
    "SELECT pg_catalog . lo_create /* */ (0)": "lo_create",
    'SELECT "lo_creat"(-1)': "lo_creat",
    'SELECT CASE WHEN true THEN"lo_creat"(-1) END': "lo_creat",
    "SELECT LO_IMPORT('/etc/passwd')": "lo_import",
    "SELECT pg_advisory_lock(1)": "pg_advisory_lock",
    "SELECT pg_try_advisory_xact_lock(1)": "pg_try_advisory",
    "SELECT set_config('statement_timeout', '0', false)": "set_config",
    "SELECT nextval('s')": "nextval",
    "SELECT dblink_exec('host=evil', 'DROP TABLE t')": "dblink_exec",
    "SELECT pg_read_file('/etc/passwd')": "pg_read_file",
    "SELECT query_to_xml('select lo_creat(-1)', true, true, '')": "query_to_xml",
    "SELECT pg_terminate_backend(1)": "pg_terminate_backend",
    "SELECT * FROM ts_stat('SELECT pg_terminate_backend(1)')": "runs SQL",
    "SELECT ts_rewrite('a', 'SELECT b')": "runs SQL",
    "SELECT * FROM crosstab('SELECT 1') AS t (a int)": "runs SQL",
    "SELECT app.pg_catalog.pg_cancel_backend(1)": "pg_cancel_backend",
    "SELECT TREAT(1::bigint AS pg_advisory_lock)": "TREAT",
    "SELECT treat /* */ (1 AS pg_sleep)": "TREAT",
    "SELECT '%s'": "placeholder",
    "SELECT E'a %s'": "placeholder",
    "SELECT $$%s$$": "placeholder",
    'SELECT 1 AS "a%s"': "placeholder",
    "SELECT 1 -- %s": "placeholder",
    "SELECT /* %%%s */ 1": "placeholder",
    "SELECT $a%s$ ' $a1$; DO $b$ x $b$ --'": "touches",
    "SELECT %s$a$ ' $a$; DO $b$ x $b$ --'": "touches",
    "SELECT E%s": "touches",
    "SELECT U&%s": "touches",
    "SELECT 'a'%s": "touches",
    "SELECT %s'a'": "touches",
    'SELECT %s"a"': "touches",
    "SELECT é%s": "touches",
    "SELECT 1%s": "touches",
    "SELECT %s%s": "touches",
    "SELECT %s.5": "touches",
    "SELECT E'a'\n%s": "continue",
    "SELECT %s\n'a'": "continue",
    "SELECT %s -- and\n %s": "continue",
}


@pytest.mark.parametrize("sql", READS, ids=lambda sql: sql[:40])
def test_statements_that_read_are_accepted(sql: str) -> None:
    sql_read_only.check("sql", sql)


@pytest.mark.parametrize(("sql", "why"), REFUSED.items(), ids=lambda text: ascii(text[:40]))
def test_other_statements_are_refused(sql: str, why: str) -> None:
    with pytest.raises(InvalidDefinition, match=f"^other_sql: .*{why}"):
        sql_read_only.check("other_sql", sql)


ARGUMENTS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.sampled_from("'\\$a-;\n "))
PIECES = st.sampled_from(
    [
        "$",
        "$a$",
        "'",
        '"',
        "\\",
        "E",
        "U&",
        "a",
        "é",
        "1",
        ".",
        "-",
        "/",
        "*",
        "(",
        ",",
        ";",
        " ",
        "\n",
        "x'",
        "N",
    ]
)


@given(st.lists(PIECES | st.just("%s"), max_size=12).map("".join), st.data())
def test_no_argument_changes_the_rest_of_an_accepted_statement(text: str, data: st.DataObject) -> None:
    sql = f"SELECT {text}"
    try:
        sql_read_only.check("sql", sql)
    except InvalidDefinition:
        assume(False)
    pieces = sql.split("%s")
    args = [data.draw(ARGUMENTS) for _ in pieces[1:]]
    words = [sql_parameters.literal("%s", [arg]) for arg in args]
    apart = [each for pair in zip(pieces, [*words, ""], strict=True) for each in pair]
    assert shown(sql_parameters.literal(sql, args)) == [token for each in apart for token in shown(each)]
    numbers = [f"${at}" for at in range(1, len(pieces))]
    apart = [each for pair in zip(pieces, [*numbers, ""], strict=True) for each in pair]
    assert shown(sql_parameters.numbered(sql)) == [token for each in apart for token in shown(each)]


def shown(sql: str) -> list[Token]:
    return significant(tokens(sql))


@pytest.mark.parametrize("work", catalog.workloads(), ids=lambda work: work.name)
def test_the_sql_of_the_catalog_is_accepted(work: WorkloadDefinition) -> None:
    for sql in filter(None, (work.sql, work.other_sql)):
        sql_read_only.check("sql", sql)
