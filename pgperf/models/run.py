"""One execution of a benchmark."""

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from pgperf.db import fields
from pgperf.models.benchmark import Benchmark
from pgperf.models.database import Database
from pgperf.models.schedule import Schedule

#: Characters of a variant's label with the longest value of each field. Two of them fit an index of
#: MariaDB.
LABEL_LENGTH = 300


class Run(models.Model):
    """One execution of a frozen definition. Only runs/state.py changes its state."""

    hidden_with: ClassVar[tuple[str, ...]] = ("benchmark", "database")

    class Status(models.TextChoices):
        QUEUED = "queued", _("queued")
        RUNNING = "running", _("running")
        DONE = "done", _("done")
        FAILED = "failed", _("failed")
        CANCELLED = "cancelled", _("cancelled")
        LOST = "lost", _("lost")

    benchmark = models.ForeignKey(Benchmark, models.SET_NULL, null=True, verbose_name=_("benchmark"))
    benchmark_name = models.CharField(_("benchmark name"), max_length=60)
    database = models.ForeignKey(Database, models.SET_NULL, null=True, verbose_name=_("database"))
    database_name = models.CharField(_("database name"), max_length=60)
    status = models.CharField(
        _("status"), max_length=12, choices=Status.choices, default=Status.QUEUED, db_index=True
    )
    quick = models.BooleanField(_("quick"), default=False)
    definition = models.JSONField(_("definition"))
    definition_hash = models.CharField(_("definition hash"), max_length=64, db_index=True)
    #: db_constraint=False: the user model may live in another database.
    requested_by = fields.UserField(
        settings.AUTH_USER_MODEL,
        null=True,
        blank=True,
        db_constraint=False,
        related_name="+",
        verbose_name=_("requested by"),
    )
    requested_at = models.DateTimeField(_("requested"))
    #: The name that the user typed for a production Database; the worker checks it again.
    confirmed_name = models.CharField(max_length=60, blank=True, editable=False)
    #: A user requested it, not a command. Without `requested_by` that user was deleted.
    by_user = models.BooleanField(default=False, editable=False)
    #: Its Benchmark or Database was restricted when the run was requested, or when it was deleted.
    restricted = models.BooleanField(_("restricted"), default=False, editable=False)
    #: Token of the form that requested it: a double click finds the run of the first click.
    request_token = models.CharField(max_length=64, unique=True, null=True, blank=True, editable=False)
    started_at = models.DateTimeField(_("started"), null=True, blank=True)
    finished_at = models.DateTimeField(_("finished"), null=True, blank=True)
    heartbeat_at = models.DateTimeField(_("last heartbeat"), null=True, blank=True)
    #: The fencing token: each claim increments it, and each later write of a worker gives it.
    attempt = models.PositiveIntegerField(_("attempt"), default=0)
    #: The id of the Database while the run is running, otherwise null: one run at a time for each row.
    busy_key = models.CharField(max_length=80, unique=True, null=True, blank=True, editable=False)
    #: The load host while the run is running, otherwise null: one run at a time per load host.
    busy_host = models.CharField(max_length=80, unique=True, null=True, blank=True, editable=False)
    #: The Celery queue of its message; empty: the command that requested the run executes it.
    queue = models.CharField(_("queue"), max_length=100, blank=True)
    #: When the broker last accepted its message; null: still to be sent. The row is the outbox.
    sent_at = models.DateTimeField(_("sent"), null=True, blank=True, editable=False)
    cancel_requested = models.BooleanField(_("cancel requested"), default=False)
    worker = models.CharField(_("worker"), max_length=200, blank=True)
    progress = models.FloatField(_("progress"), default=0.0, help_text=_("0 to 1"))
    message = models.CharField(_("message"), max_length=300, blank=True)
    error = models.TextField(_("error"), blank=True)
    environment = models.JSONField(_("environment"), default=dict)
    timings = models.JSONField(_("timings"), default=dict)
    #: Results of analysis.summary that have no rows of their own: ladders, controls, skipped
    #: layers.
    summary = models.JSONField(_("summary"), default=dict)
    analysis_version = models.PositiveSmallIntegerField(_("analysis version"), default=0)
    notes = models.TextField(_("notes"), blank=True)
    #: The run whose verdict this run tests, the label of the variant, and the change that tests it.
    confirms = models.ForeignKey(
        "self", models.SET_NULL, null=True, blank=True, editable=False, related_name="confirmations"
    )
    confirms_variant = models.CharField(max_length=LABEL_LENGTH, blank=True, editable=False)
    intervention = models.CharField(max_length=30, blank=True, editable=False)
    #: The schedule that started it, null once that was deleted, and the time that was due.
    schedule = models.ForeignKey(
        Schedule, models.SET_NULL, null=True, blank=True, editable=False, related_name="runs"
    )
    scheduled_for = models.DateTimeField(_("scheduled for"), null=True, blank=True, editable=False)
    #: In what the environment differs from that of the run before it in its history: {"since": that
    #: run, "differences": [[what, before, after], ...]}. Null: not compared.
    environment_changes = models.JSONField(null=True, editable=False)
    #: `pgperf prune` keeps pinned runs.
    pinned = models.BooleanField(_("pinned"), default=False)

    class Meta:
        verbose_name = _("run")
        verbose_name_plural = _("runs")
        ordering = ["-id"]
        permissions = [
            ("start_run", _("Can run benchmarks")),
            ("cancel_run", _("Can cancel runs")),
            ("export_run", _("Can export results")),
        ]

    def __str__(self) -> str:
        return f"{self.benchmark_name} #{self.pk}"

    @property
    def session_key(self) -> str:
        """What names its sessions, with `pgperf-` before it, also on its load hosts. Another
        installation may measure the same server with a run of the same number, but of another seed.
        """
        return f"{self.pk}-{self.definition.get('seed', 0):x}"

    @property
    def partial(self) -> bool:
        """Are its figures those of the blocks that it finished before it ended?"""
        return bool(self.summary.get("partial"))
