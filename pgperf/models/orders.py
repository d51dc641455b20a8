"""What a run orders from workers on other hosts, and their answers."""

from django.db import models
from django.utils.translation import gettext_lazy as _

from pgperf.models.run import Run


class _Orders(models.Model):
    """Orders of a run to a worker on another host, and its answers (pgperf.runs.order_rows)."""

    attempt = models.PositiveIntegerField()
    queue = models.CharField(max_length=100)
    agent = models.CharField(max_length=200, blank=True)  # the worker that accepted it
    refusal = models.CharField(max_length=300, blank=True)  # why it cannot serve
    order = models.JSONField(default=dict)
    order_number = models.PositiveIntegerField(default=0)
    answer = models.JSONField(default=dict)
    answer_number = models.PositiveIntegerField(default=0)  # order_number of the order that it answers
    readings = models.BinaryField(default=b"")  # what it read or recorded, packed

    class Meta:
        abstract = True


class Sampling(_Orders):
    """The requests of a run to the agent on its database's host (see pgperf.agent)."""

    #: The index of the constraint begins with the run.
    run = models.ForeignKey(Run, models.CASCADE, related_name="samplings", db_index=False)

    class Meta:
        verbose_name = _("sampling")
        verbose_name_plural = _("samplings")
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(fields=["run", "attempt"], name="pgperf_one_sampling_per_attempt")
        ]

    def __str__(self) -> str:
        return f"{self.run_id} · attempt {self.attempt} · {self.queue}"


class LoadShare(_Orders):
    """The orders of a run to one of its load hosts (see pgperf.load)."""

    #: The index of the constraint begins with the run.
    run = models.ForeignKey(Run, models.CASCADE, related_name="load_shares", db_index=False)
    name = models.CharField(max_length=60)  # of the load host
    #: The same as the queue while the run lasts: a load host serves one run at a time.
    busy_queue = models.CharField(max_length=100, unique=True)
    seen_at = models.DateTimeField(null=True)  # its last sign of life; null: it has not come yet
    machine = models.CharField(max_length=80, blank=True)  # where it makes load; empty: not come yet

    class Meta:
        verbose_name = _("share of a load host")
        verbose_name_plural = _("shares of load hosts")
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(fields=["run", "attempt", "name"], name="pgperf_one_share_per_host")
        ]

    def __str__(self) -> str:
        return f"{self.run_id} · attempt {self.attempt} · {self.name}"
