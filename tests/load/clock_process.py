"""A process with a shifted monotonic clock: for each line of its input, it asks the database for the
time and prints its offset as JSON.
"""

import json
import sys

import django


def main(run_id: int) -> None:
    django.setup()
    from pgperf.models import Run
    from pgperf.runs import database_clock

    for _line in sys.stdin:
        offset = database_clock.offset(Run.objects.filter(pk=run_id))
        print(json.dumps(offset.to_json()), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
