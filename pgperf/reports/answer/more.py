"""What the answer leaves to the verdicts."""

from collections.abc import Iterator

from django.utils.translation import ngettext


def more(count: int) -> Iterator[str]:
    """How many more the verdicts list; nothing where there are none."""
    if count > 0:
        yield (
            ngettext("%d more is listed with the verdicts.", "%d more are listed with the verdicts.", count)
            % count
        )
