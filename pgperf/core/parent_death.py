"""Processes that the kernel kills when the thread that started them ends: setpriv of util-linux."""

import shutil
import subprocess
from functools import lru_cache


def die_with_parent() -> list[str]:
    """The words before a command line; none where no setpriv can do it.

    Without them, a process detects the end of its parent only by its closed stdin.
    """
    setpriv = shutil.which("setpriv")
    words = [setpriv, "--pdeathsig", "KILL", "--"] if setpriv else []
    return words if words and _is_accepted(tuple(words)) else []


@lru_cache
def _is_accepted(words: tuple[str, ...]) -> bool:
    """BusyBox has a setpriv without this option."""
    return not subprocess.run([*words, "true"], capture_output=True, check=False).returncode
