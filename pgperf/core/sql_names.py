r"""Names in SQL that a person pastes into psql (pure).

Inside double quotes psql obeys no backslash, no variable and no backquote. A line break or another
control character could still reach the terminal's line editor, so names with one are refused where
answers are read (`answers`).
"""


def quoted(name: str) -> str:
    """The name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def psql_connect(dbname: str) -> str:
    """psql's command to connect to that database of the same server.

    psql reads a bare name with an equals sign, or one that begins like a URL, as a connection
    string, which may lead to another host.
    """
    value = dbname.replace("\\", "\\\\").replace("'", "\\'")
    return "\\connect -reuse-previous=on " + quoted(f"dbname='{value}'")
