"""Statements that call one function of one argument, in many spellings."""

from hypothesis import strategies as st

_SPACE = st.sampled_from(
    ["", " ", "\t", "\n", "\r\n", "\f", "/**/", "/* a /* b */ ( */", "-- )\n", " \n /* ; */ "]
)
#: Where a value may stand.
_VALUES = [
    "SELECT {call}",
    "SELECT 1 WHERE {call} IS NOT NULL",
    "SELECT coalesce({call}, {call})",
    "SELECT * FROM (VALUES (1)) AS v (a) CROSS JOIN LATERAL (SELECT {call}) AS x",
    "SELECT (SELECT {call})",
    "SELECT EXISTS (SELECT {call} OFFSET 0), {call}",
    "SELECT count(*) FILTER (WHERE {call} > 0) FROM (VALUES (1)) AS v (a)",
    "SELECT CASE WHEN {call} > 0 THEN 1 END",
    "SELECT ARRAY[{call}]",
    "SELECT 1 UNION SELECT {call}",
    "SELECT 1 LIMIT {call}",
    "WITH x AS MATERIALIZED (SELECT {call} AS a) SELECT * FROM x",
    "WITH RECURSIVE x (a) AS (SELECT {call} UNION ALL SELECT a + 1 FROM x WHERE a < 0) TABLE x",
    "VALUES ({call})",
    "VALUES (0), ({call})",
    "(((SELECT {call})))",
    "SELECT sum({call}) OVER () FROM (VALUES (1)) AS v (a)",
]
#: Where only name(...) may stand.
_TABLES = [
    "SELECT * FROM {call}",
    "SELECT * FROM ROWS FROM ({call}) AS x",
    "SELECT * FROM (VALUES (1)) AS v (a), LATERAL {call}",
]
_DOTTED = [
    "(1){s}.{s}{name}",
    "(CAST(1 AS int)){s}.{name}",
    "((ARRAY[1])[1]).{s}{name}",
    "(SELECT v{s}.{s}{name} FROM generate_series(1, 1) AS v)",
]


@st.composite
def _name(draw: st.DrawFn, plain: str) -> str:
    """The name quoted, or unquoted in any case."""
    if draw(st.booleans()):
        return f'"{plain}"'
    return "".join(draw(st.sampled_from([letter.lower(), letter.upper()])) for letter in plain)


@st.composite
def spelled_calls(draw: st.DrawFn, schema: str, name: str) -> str:
    """A statement that calls schema.name(1). The schema is on the search path."""
    spelled = draw(_name(name))
    if draw(st.integers(0, 3)) == 0:
        call = draw(st.sampled_from(_DOTTED)).format(name=spelled, s=draw(_SPACE))
        return draw(st.sampled_from(_VALUES)).format(call=call)
    prefix = f"{draw(_name(schema))}{draw(_SPACE)}.{draw(_SPACE)}" if draw(st.booleans()) else ""
    call = f"{prefix}{spelled}{draw(_SPACE)}({draw(_SPACE)}1{draw(_SPACE)})"
    return draw(st.sampled_from(_VALUES + _TABLES)).format(call=call)
