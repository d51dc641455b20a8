"""Reports the Python that runs this file, as JSON on its last line of output.

`python environment_report.py MODULES DISTRIBUTIONS`, names with commas. Any Python can run it, so it
imports pgperf only to ask for its version.
"""

import importlib.util
import json
import platform
import sys
from importlib import metadata


def _pgperf() -> str:
    try:
        import pgperf
    except ImportError:
        return ""
    return str(getattr(pgperf, "__version__", ""))


def _versions(names: "list[str]") -> "dict[str, str]":
    found = {}
    for name in names:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


if __name__ == "__main__":
    modules, distributions = (argument.split(",") for argument in sys.argv[1:3])
    report = {
        "python": platform.python_version(),
        "path": sys.path,
        "modules": [name for name in modules if importlib.util.find_spec(name)],
        "packages": _versions(distributions),
        "pgperf": _pgperf(),
    }
    print(json.dumps(report))
