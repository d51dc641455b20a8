"""The switch that stops all starts."""

from django.db import models
from django.utils.translation import gettext_lazy as _

from pgperf.db import validators


class Pause(models.Model):
    """While its row is there, no run starts, and the running ones end. Without a row runs start."""

    #: The same in every row: there is at most one.
    switch = models.BooleanField(default=True, unique=True, editable=False)
    reason = models.CharField(
        _("reason"),
        max_length=200,
        blank=True,
        validators=[validators.one_line],
        help_text=_("Shown to all users. The pause cancels every running run; completed blocks are kept."),
    )
    by = models.CharField(_("paused by"), max_length=150, editable=False)
    since = models.DateTimeField(_("since"), editable=False)

    class Meta:
        verbose_name = _("pause")
        verbose_name_plural = _("pause")
        default_permissions = ("add", "delete", "view")

    def __str__(self) -> str:
        return f"{self._meta.verbose_name}: {self.reason or self.by}"
