"""The app's configuration: what is wired when Django starts.

Nothing here touches a database or the broker.
"""

from django.apps import AppConfig
from django.db.models.signals import post_migrate, pre_delete
from django.utils.translation import gettext_lazy as _


class PgperfConfig(AppConfig):
    name = "pgperf"
    label = "pgperf"
    verbose_name = _("pgperf: where database time goes")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        # Only now are there models to import; the checks register themselves. A worker's hooks come
        # with tasks.py.
        from pgperf import models
        from pgperf.access import permissions
        from pgperf.catalog import sync

        post_migrate.connect(sync.copy_catalog, sender=self, dispatch_uid="pgperf.copy_catalog")
        for model in (models.Database, models.Benchmark):
            uid = f"pgperf.restrict_runs.{model.__name__}"
            pre_delete.connect(permissions.restrict_runs, sender=model, dispatch_uid=uid)
