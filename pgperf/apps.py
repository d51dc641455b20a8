"""The app's configuration: what is wired when Django starts.

Nothing here touches a database or the broker.
"""

from django.apps import AppConfig
from django.conf import settings
from django.db.models.signals import m2m_changed, post_migrate, pre_delete, pre_save
from django.utils.translation import gettext_lazy as _

from pgperf.core import site_start


class PgperfConfig(AppConfig):
    name = "pgperf"
    label = "pgperf"
    verbose_name = _("pgperf: where database time goes")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        # Only now are there models to import; the checks register themselves. A worker's hooks come
        # with tasks.py.
        from pgperf.catalog import sync

        post_migrate.connect(sync.copy_catalog, sender=self, dispatch_uid="pgperf.copy_catalog")
        _keep_restrictions()
        _keep_changes()
        site_start.note()


def _keep_restrictions() -> None:
    """Rows stay restricted when a group, a user, or a row that they are hidden with, goes."""
    from django.contrib.auth.models import Group

    from pgperf import models
    from pgperf.db import restriction

    for model in (models.Database, models.Workload, models.Benchmark):
        uid = f"pgperf.restriction.{model.__name__}"
        m2m_changed.connect(restriction.groups_change, sender=model.groups.through, dispatch_uid=uid)
        pre_delete.connect(restriction.parent_is_deleted, sender=model, dispatch_uid=uid)
    pre_save.connect(restriction.parents_change, sender=models.Benchmark, dispatch_uid="pgperf.restriction")
    pre_delete.connect(
        restriction.link_is_deleted, sender=models.BenchmarkWorkload, dispatch_uid="pgperf.restriction"
    )
    pre_delete.connect(restriction.group_is_deleted, sender=Group, dispatch_uid="pgperf.restriction")
    owned_by = (
        (models.Run, "requested_by"),
        (models.Schedule, "owner"),
        (models.StatementList, "asked_by"),
    )
    for owned, name in owned_by:
        pre_delete.connect(
            owned._meta.get_field(name).forget_user,  # type: ignore[union-attr]
            sender=settings.AUTH_USER_MODEL,
            weak=False,
            dispatch_uid=f"pgperf.forget_user.{owned.__name__}",
        )


def _keep_changes() -> None:
    """A level of a figure outlives the run with which it began."""
    from pgperf.models import Run
    from pgperf.runs import deleted_run

    pre_delete.connect(deleted_run.hand_on_changes, sender=Run, dispatch_uid="pgperf.changes")
