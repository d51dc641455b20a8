"""Which script an interpreter runs: "python3" alone finds no program on a machine with ten of them."""

import re
from pathlib import Path

_INTERPRETER = re.compile(r"(python|perl|ruby|node|php|bash|sh)[\d.]*")
_MODULE = "-m"
#: A script's or a module's own name. Further arguments may be secrets and reach no result.
_NAME = re.compile(r"[A-Za-z_][\w.-]{0,39}")


def full_name(pid: int, name: str, proc: Path) -> str:
    """`python3 manage.py` for an interpreter of that name, else `name` as it is."""
    script = _script(pid, proc) if _INTERPRETER.fullmatch(name) else ""
    return f"{name} {script}" if script else name


def _script(pid: int, proc: Path) -> str:
    """The base name of the script, or the module; "" where the first argument is neither."""
    first, second = (*_arguments(pid, proc), "", "")[:2]
    found = second if first == _MODULE else Path(first).name
    return found if _NAME.fullmatch(found) else ""


def _arguments(pid: int, proc: Path) -> list[str]:
    """Those of the program; none if it has ended."""
    try:
        return (proc / str(pid) / "cmdline").read_bytes().decode(errors="replace").split("\0")[1:]
    except OSError:
        return []
