"""The verb and the table of a statement that writes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgperf.core.written_table import Write, write_of

NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=20)
BEFORE_A_TABLE = {
    "INSERT INTO {} VALUES (4711)": "INSERT",
    "UPDATE {} SET a = 'FROM secret' WHERE b = 4711": "UPDATE",
    "UPDATE ONLY {} SET a = 1": "UPDATE",
    "DELETE FROM {} WHERE b IN (SELECT 4711 FROM other)": "DELETE",
    "WITH gone AS (DELETE FROM ONLY {} RETURNING *) SELECT * FROM gone": "DELETE",
    "MERGE INTO {} USING other ON true WHEN MATCHED THEN DO NOTHING": "MERGE",
    "TRUNCATE TABLE ONLY {}": "TRUNCATE",
    "truncate {}": "TRUNCATE",
    "COPY {} FROM STDIN": "COPY",
    "LOCK TABLE {} IN SHARE MODE": "LOCK",
    "REFRESH MATERIALIZED VIEW CONCURRENTLY {}": "REFRESH",
    "CREATE TABLE IF NOT EXISTS {} (id int)": "CREATE TABLE",
    "DROP TABLE IF EXISTS {}": "DROP TABLE",
    "ALTER TABLE {} ADD COLUMN a int": "ALTER TABLE",
    "SELECT 1 FROM {} WHERE a = 4711 FOR UPDATE": "SELECT FOR UPDATE",
    "SELECT 1 FROM {} FOR NO KEY UPDATE": "SELECT FOR UPDATE",
    "SELECT 1 FROM {} FOR KEY SHARE": "SELECT FOR SHARE",
    "EXPLAIN ANALYZE UPDATE {} SET a = 1": "UPDATE",
}


@pytest.mark.parametrize("text", BEFORE_A_TABLE)
@given(NAMES, NAMES)
def test_the_table_of_each_verb_is_found_whatever_its_name(text: str, schema: str, table: str) -> None:
    quoted = ".".join('"{}"'.format(name.replace('"', '""')) for name in (schema, table))
    assert write_of(text.format(quoted)) == Write(BEFORE_A_TABLE[text], quoted)
    assert write_of("/* INSERT INTO 4711 */ " + text.format("shop.book")) == (
        BEFORE_A_TABLE[text],
        "shop.book",
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("INSERT INTO book (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET a = 2", "INSERT of book"),
        ("SELECT nextval('secret')", "SELECT"),
        ("SELECT f(4711) FROM book", "SELECT"),
        ("CREATE SCHEMA secret", "CREATE SCHEMA"),
        ("COPY (SELECT 4711) TO STDOUT", "COPY"),
        ("UPDATE U&\"s\\0065cret\" SET a = 1", "UPDATE"),
        ('UPDATE "never closed', "UPDATE"),
        ("VACUUM", "VACUUM"),
        ("GRANT INSERT ON book TO reader", "GRANT"),
        ("CREATE TRIGGER t BEFORE INSERT OR UPDATE ON book EXECUTE FUNCTION f()", "CREATE TRIGGER"),
        ("CALL refresh(4711)", "CALL"),
        ("", ""),
    ],
)  # fmt: skip
def test_what_the_words_do_not_tell_is_left_out(text: str, said: str) -> None:
    assert str(write_of(text)) == said


@given(
    st.text()
    | st.text("ab1 '\"$-/*;,.\\\n")
    | st.lists(st.sampled_from(["UPDATE", '"', "'", ".", "4711", " "]))
)
def test_no_text_breaks_it_or_shows_a_value(text: str | list[str]) -> None:
    found = write_of("UPDATE " + "".join(text))
    assert found.verb
    assert "'" not in found.table.partition('"')[0]
    assert not found.table[:1].isdigit()
