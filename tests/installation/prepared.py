"""A site whose Django is prepared once: each command is a process of its own, forked from there.

It runs the site's manage.py as a whole process does. What it saves is the time of the imports.
"""

from dataclasses import dataclass, field
from tempfile import TemporaryFile

from tests.forking import ForkServer
from tests.installation.environments import Site

_ONE_COMMAND = """
import runpy, sys
sys.argv = ["manage.py", "version"]
runpy.run_path("manage.py", run_name="__main__")
"""


@dataclass
class PreparedSite(Site):
    """Its settings and its installed apps are those of the first command since `changed`."""

    _server: ForkServer | None = field(default=None, init=False)

    def manage(self, *words: str, code: int = 0) -> str:
        ended, out, err = self.outcome(*words)
        assert ended == code, f"{' '.join(words)} ended with {ended}:\n{out}\n{err}"
        return out

    def outcome(self, *words: str) -> tuple[int, str, str]:
        """The exit code of a command, its stdout and its stderr."""
        if not self._server:
            self._server = ForkServer(_ONE_COMMAND, self.env, [str(self.python)], self.folder)
        with TemporaryFile() as err:
            process = self._server.start(["manage.py", *words], err)
            process.stdin.close()
            with process.stdout:
                out = process.stdout.read()
            code = process.wait()
            err.seek(0)
            return code, out.decode(), err.read().decode()

    def changed(self) -> None:
        """The next command reads the site's files again."""
        if self._server:
            self._server.stop()
            self._server = None
