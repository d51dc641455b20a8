"""Runs a client under another Python than the site's: `python -I isolated.py MODULE`.

Only the package pgperf is taken from the site. With its parent directory on sys.path, the site's
packages would be importable too, and could hide the driver of the other Python.
"""

import importlib.util
import runpy
import sys
from pathlib import Path


def lend_package(name: str, folder: Path) -> None:
    """Make the package in `folder` importable without its neighbours."""
    spec = importlib.util.spec_from_file_location(
        name, folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    assert spec
    assert spec.loader
    package = importlib.util.module_from_spec(spec)
    sys.modules[name] = package
    spec.loader.exec_module(package)


if __name__ == "__main__":
    lend_package("pgperf", Path(__file__).resolve().parent.parent)
    runpy.run_module(sys.argv[1], run_name="__main__", alter_sys=True)
