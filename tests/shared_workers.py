"""Workers that the tests of a module share, beside tables that each test empties."""

from collections.abc import Iterable, Sequence

from example.stack.part import Part
from pgperf.db.now import Now
from pgperf.models import Worker
from tests.waiting import until


def rows_of(parts: Iterable[Part]) -> list[Worker]:
    """The rows of workers that have just started."""
    number = len([*parts])
    until(lambda: Worker.objects.count() >= number, 120, f"{number} workers have their rows")
    return list(Worker.objects.all())


def there_again(parts: Iterable[Part], rows: Sequence[Worker]) -> None:
    """Put back the rows, which the workers would write again within ten seconds, and start what the
    last test has ended.
    """
    for row in rows:
        row.pk = None
    Worker.objects.bulk_create(rows, ignore_conflicts=True)
    Worker.objects.update(last_seen=Now())
    for part in parts:
        if part.has_ended():
            part.start()
