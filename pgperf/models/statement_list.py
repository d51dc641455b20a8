"""The statements that take a server the most time."""

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from pgperf.db import fields
from pgperf.models.database import Database


class StatementList(models.Model):
    """The statements that take a database's server the most time, as a worker read them on request."""

    database = models.OneToOneField(Database, models.CASCADE, related_name="statement_list")
    asked_at = models.DateTimeField(null=True)  # null: no answer is awaited
    #: Who asked last; the worker checks the permission again. Null: the user was deleted.
    asked_by = fields.UserField(settings.AUTH_USER_MODEL, null=True, db_constraint=False, related_name="+")
    read_at = models.DateTimeField(null=True)  # null: never read
    error = models.CharField(max_length=300, blank=True)  # why the last request has no answer
    statements = models.JSONField(default=list)  # of runner.server.top_statements.TopStatement

    class Meta:
        verbose_name = _("list of statements")
        verbose_name_plural = _("lists of statements")
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self._meta.verbose_name}: {self.database}"
