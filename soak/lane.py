"""One lane of a campaign: a whole site of its own, and cases performed on it one after the other.

    python -m soak.lane MODULE DIRECTORY

reads a JSON case a line from stdin and prints a JSON result a line, until stdin ends. `MODULE` has `Performer(site)`
whose `perform(case)` does it. The module is imported by name once the site's variables are set: Django's settings read
them when they are imported.
"""

import importlib
import json
import os
import sys
from pathlib import Path
from typing import Any

import django

from soak.site import Site


def main() -> int:
    module, directory = sys.argv[1:]
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # nothing but results goes where results are read
    with Site(Path(directory)) as site:
        os.environ.update(site.env)
        django.setup()
        performer = importlib.import_module(module).Performer(site)
        _say(replies, {"ready": True})
        for line in sys.stdin:
            _say(replies, performer.perform(json.loads(line)))
    return 0


def _say(replies: Any, result: Any) -> None:
    replies.write(json.dumps(result) + "\n")
    replies.flush()


if __name__ == "__main__":
    sys.exit(main())
