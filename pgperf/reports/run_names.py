"""Names of other runs in a run's message or error.

The stored text says "run 6", because not everyone who sees a run may see the run that it waits
for. The name is added for those who may.
"""

import re
from collections.abc import Sequence
from typing import Any

from pgperf.access import permissions
from pgperf.models import Run

_RUN = re.compile(r"\brun ([0-9]{1,18})\b")


def named(text: str, viewer: Any = None) -> str:
    """The text with the names of the runs that the viewer may see; None: a command, which may see
    all.
    """
    return named_each([text], viewer)[0]


def named_each(texts: Sequence[str], viewer: Any = None) -> list[str]:
    """The same for several texts, in one look-up."""
    numbers = {int(number) for text in texts for number in _RUN.findall(text)}
    names = _names(numbers, viewer) if numbers else {}
    return [_RUN.sub(lambda found: names.get(found[1], found[0]), text) for text in texts]


def _names(numbers: set[int], viewer: Any) -> dict[str, str]:
    runs = Run.objects.filter(pk__in=numbers).only("benchmark_name")
    shown = runs if viewer is None else permissions.visible(runs, viewer)
    return {str(run.pk): str(run) for run in shown}
