"""What outlives a deleted run: the levels of its benchmark's figures that began with it, and the
changes of the environment around it.
"""

from typing import Any

from pgperf.models import ChangePoint, Run
from pgperf.runs.step_series import comparable


def hand_on_changes(sender: type[Run], instance: Run, using: str, **given: Any) -> None:
    """pre_delete handler: a level that began with this run begins with the next one. Without its row,
    a later run would find the change again and announce it a second time.

    The next run gets rows of its own: where a site listens to all deletions, Django has noted the
    keys of the old ones. It has not noted those that an earlier call of this handler made.

    The environment of the next run was compared with that of this one. The next run that ends
    compares it again, with that of the run before.
    """
    own = ChangePoint.objects.using(using).filter(run=instance)
    rows = list(own)
    own._raw_delete(using)
    runs = Run.objects.using(using)
    later = comparable(runs, instance).filter(pk__gt=instance.pk)
    if number := later.order_by("pk").values_list("pk", flat=True).first():
        runs.filter(pk=number).update(environment_changes=None)
        for row in rows:
            row.pk, row.run_id = None, number
        ChangePoint.objects.using(using).bulk_create(rows, ignore_conflicts=True)  # it may have its own
