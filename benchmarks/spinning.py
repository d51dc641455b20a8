"""A psycopg client that uses additional CPU time before each statement.

write(folder, us) -> path of a program that serves as the interpreter of layer psycopg
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

_PROGRAM = """\
#!{python}
import sys
sys.path.insert(0, {root!r})
from time import perf_counter_ns
from pgperf.clients.loop import main
from pgperf.clients.programs.psycopg_client import PsycopgClient


class Spinning(PsycopgClient):
    def operation(self, spec, other=False):
        statement = super().operation(spec, other)

        def run():
            until = perf_counter_ns() + {ns}
            while perf_counter_ns() < until:
                pass
            return statement()

        return run


main(Spinning)
"""


def write(folder: Path, us: int) -> str:
    """Write the program, which spins for `us` µs per operation; its path."""
    path = folder / f"spinning-{us}"
    path.write_text(_PROGRAM.format(python=sys.executable, root=str(ROOT), ns=us * 1000))
    path.chmod(0o755)
    return str(path)
