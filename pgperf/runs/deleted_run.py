"""What outlives a deleted run: the levels of its benchmark's figures that began with it."""

from typing import Any

from pgperf.models import ChangePoint, Run
from pgperf.runs.step_series import comparable


def hand_on_changes(sender: type[Run], instance: Run, using: str, **given: Any) -> None:
    """pre_delete handler: a level that began with this run begins with the next one. Without its row,
    a later run would find the change again and announce it a second time.
    """
    own = ChangePoint.objects.using(using).filter(run=instance)
    begun = {row.pk: (row.label, row.below) for row in own}
    runs = comparable(Run.objects.using(using), instance).filter(pk__gt=instance.pk)
    if not begun or (later := runs.order_by("pk").first()) is None:
        return
    there = set(ChangePoint.objects.using(using).filter(run=later).values_list("label", "below"))
    own.filter(pk__in=[pk for pk, step in begun.items() if step not in there]).update(run=later)
