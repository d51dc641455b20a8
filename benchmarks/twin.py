"""A second Python with the packages of this one, for comparisons of equal environments."""

import subprocess
import sys
import sysconfig
from pathlib import Path

from pgperf.core.client_environment import ClientEnvironment

_ROOT = Path(__file__).resolve().parent.parent


def empty_environment(directory: Path, name: str) -> ClientEnvironment:
    """A virtual environment without any package."""
    root = directory / name
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", "--symlinks", str(root)], check=True)
    return ClientEnvironment(name, str(root / "bin" / "python"))


def twin(directory: Path, name: str = "twin") -> ClientEnvironment:
    """One that lends the packages of this Python, and so has equal versions at another path."""
    environment = empty_environment(directory, name)
    lent = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), str(_ROOT)]
    (packages(environment) / "lent.pth").write_text("\n".join(dict.fromkeys(lent)))
    return environment


def packages(environment: ClientEnvironment) -> Path:
    """The directory of its packages."""
    (found,) = Path(environment.root).glob("lib/python*/site-packages")
    return found
