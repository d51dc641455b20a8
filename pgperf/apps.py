"""The app's configuration."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class PgperfConfig(AppConfig):
    name = "pgperf"
    label = "pgperf"
    verbose_name = _("pgperf: where database time goes")
    default_auto_field = "django.db.models.BigAutoField"
