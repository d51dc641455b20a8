"""One lane of a campaign: a separate site on which the cases run in sequence.

    python -m soak.lane MODULE DIRECTORY

The program reads one JSON case a line from stdin and prints one JSON result a line, until stdin
ends. `MODULE` defines `Performer(site)`, whose method `perform(case)` returns the result. The lane
imports the module after it has set the site's environment variables, because Django's settings
read them at import.
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
    os.dup2(2, 1)  # only results may go to the pipe that the campaign reads
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
