"""How clients of a run with several environments start: each side at a path that the sides swap from
block to block, with environment variables whose size changes.

The lengths of paths and of the environment block move a process's stack and heap. Fixed, they could
make one side faster for as long as the run takes (https://doi.org/10.1145/1508284.1508275).
"""

import os
import random
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pgperf
from pgperf.core.client_environment import DEFAULT, PADDING
from pgperf.core.layers import LAYERS
from pgperf.core.protocol import is_libpq_variable
from pgperf.core.records import Definition, Variant, WorkloadDefinition
from pgperf.install.environments import UsableEnvironment, interpreter_variables
from pgperf.runner.client_process import PACKAGE_ROOT, ProcessEnvironment

#: A page of memory: the stack begins somewhere else in it in each block.
_MOST_PADDING = 4096
_OF_ANOTHER_PYTHON = ("PYTHONHOME", "PYTHONPATH")


@dataclass(frozen=True)
class ClientStart:
    """The command, the variables and the directory of a client."""

    argv: list[str]
    process_environment: ProcessEnvironment | None


@dataclass(frozen=True)
class BlockPlaces:
    """Where the environments of a run are in one block: name -> the path of its directory."""

    usable: Mapping[str, UsableEnvironment]
    roots: Mapping[str, Path]
    seed: str

    def start(self, variant: Variant, work: WorkloadDefinition, own: ClientStart) -> ClientStart:
        """How a client of the variant starts. `own`: how the default environment starts it, which
        stays for clients that its Python does not run.
        """
        entry = LAYERS[variant.layer]
        if not entry.has_environments or (variant.environment == DEFAULT and own.argv[0] != sys.executable):
            return own
        used = self.usable[variant.environment]
        python = self.roots[variant.environment] / Path(used.environment.python).relative_to(
            used.environment.root
        )
        in_site = work.is_site and entry.needs_site
        around = self._of_site(used) if in_site else ProcessEnvironment(self._plain(used), "/")
        padding = {PADDING: "x" * random.Random(f"{self.seed}/{variant.label}").randrange(_MOST_PADDING)}
        variables = {**around.environment, **padding}
        return ClientStart(
            [str(python), "-m", entry.program], ProcessEnvironment(variables, around.directory)
        )

    def _plain(self, used: UsableEnvironment) -> dict[str, str]:
        variables = interpreter_variables(used.environment)
        lent = used.environment.is_default and used.installed.pgperf != pgperf.__version__
        return {**variables, **({"PYTHONPATH": PACKAGE_ROOT} if lent else {})}

    def _of_site(self, used: UsableEnvironment) -> ProcessEnvironment:
        """The worker's variables and directory, and the paths of the site's code."""
        inherited = {
            name: value
            for name, value in os.environ.items()
            if not (is_libpq_variable(name) or name in _OF_ANOTHER_PYTHON)
        }
        settings = {"DJANGO_SETTINGS_MODULE": used.environment.settings} if used.environment.settings else {}
        variables = {**self._plain(used), **inherited, **used.environment.variables, **settings}
        path = [*filter(None, [variables.get("PYTHONPATH", "")]), *self._site_path()]
        return ProcessEnvironment({**variables, "PYTHONPATH": os.pathsep.join(path)}, os.getcwd())

    def _site_path(self) -> list[str]:
        """The entries of the worker's import path that its Python does not have by itself: the site's
        code.
        """
        own = self.usable[DEFAULT].installed.path
        return list(dict.fromkeys(path for entry in sys.path if (path := entry or os.getcwd()) not in own))


class EnvironmentPlaces:
    """The directory of a run with a link for each environment and each of the paths that it has."""

    def __init__(self, usable: Mapping[str, UsableEnvironment], directory: Path, seed: int) -> None:
        self._usable, self._directory, self._seed = usable, directory, seed

    def in_block(self, block: int) -> BlockPlaces:
        """Where the environments are then: each where another one was in the block before."""
        return BlockPlaces(self._usable, self._roots(block % len(self._usable)), f"{self._seed}/{block}")

    def make_links(self) -> None:
        for turn in range(len(self._usable)):
            for name, root in self._roots(turn).items():
                root.parent.mkdir(exist_ok=True)
                root.symlink_to(self._usable[name].environment.root)

    def _roots(self, turn: int) -> dict[str, Path]:
        """Paths of the same length, as long as there are at most a hundred environments."""
        count = len(self._usable)
        return {
            name: self._directory / f"{turn:02}" / f"{(at + turn) % count:02}"
            for at, name in enumerate(self._usable)
        }


@contextmanager
def places(
    definition: Definition, usable: Mapping[str, UsableEnvironment]
) -> Iterator[EnvironmentPlaces | None]:
    """The places of a run; None for a run in the default environment alone."""
    if not definition.has_environments:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="pgperf-") as directory:
        made = EnvironmentPlaces(usable, Path(directory), definition.seed)
        made.make_links()
        yield made
