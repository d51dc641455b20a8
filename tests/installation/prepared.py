"""A site whose Django is prepared once: each command is a process of its own, forked from there.

It runs the site's manage.py as a whole process does. What it saves is the time of the imports.
"""

import json
import subprocess
from dataclasses import dataclass, field

from tests.installation.environments import Site

#: Reads the words of a command from each line, and answers with the exit code of its process.
_FORKS = """
import json, os, runpy, sys, traceback

def run(words):
    sys.argv = ["manage.py", *words]
    try:
        runpy.run_path("manage.py", run_name="__main__")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0

with open(os.devnull, "w") as sys.stdout:
    run(["version"])
sys.stdout = sys.__stdout__
for line in sys.stdin:
    order = json.loads(line)
    pid = os.fork()
    if pid == 0:
        for number, name in ((0, os.devnull), (1, order["out"]), (2, order["err"])):
            os.dup2(os.open(name, os.O_RDWR | os.O_CREAT | os.O_TRUNC), number)
        code = run(order["words"])
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    os.write(1, b"%d\\n" % os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


@dataclass
class PreparedSite(Site):
    """Its settings and its installed apps are those of the first command since `changed`."""

    _process: "subprocess.Popen[str] | None" = field(default=None, init=False)

    def manage(self, *words: str, code: int = 0) -> str:
        ended, out, err = self.outcome(*words)
        assert ended == code, f"{' '.join(words)} ended with {ended}:\n{out}\n{err}"
        return out

    def outcome(self, *words: str) -> tuple[int, str, str]:
        """The exit code of a command, its stdout and its stderr."""
        out, err = self.folder / ".out", self.folder / ".err"
        process = self._process = self._process or self._start()
        assert process.stdin
        assert process.stdout
        process.stdin.write(json.dumps({"words": words, "out": str(out), "err": str(err)}) + "\n")
        process.stdin.flush()
        answer = process.stdout.readline()
        assert answer, "the site cannot be prepared"
        return int(answer), out.read_text(), err.read_text()

    def changed(self) -> None:
        """The next command reads the site's files again."""
        if self._process:
            self._process.communicate()
            self._process = None

    def _start(self) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [str(self.python), "-c", _FORKS], cwd=self.folder, env=dict(self.env), text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
