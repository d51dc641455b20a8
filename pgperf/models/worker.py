"""The workers that can run benchmarks, and what they see of their machines."""

from django.db import models
from django.utils.translation import gettext_lazy as _


class Worker(models.Model):
    """A Celery worker that can run benchmarks, as it described itself at its start."""

    hostname = models.CharField(_("hostname"), max_length=200, unique=True)
    queue = models.CharField(_("queue"), max_length=100)
    #: Layer -> reason why it cannot run, "" if it can. Connection modes that a layer lacks are there
    #: by the names of `core.layers.connecting`.
    layers = models.JSONField(_("layers"), default=dict)
    versions = models.JSONField(_("versions"), default=dict)
    last_seen = models.DateTimeField(_("last seen"))

    class Meta:
        verbose_name = _("worker")
        verbose_name_plural = _("workers")
        ordering = ["hostname"]

    def __str__(self) -> str:
        return self.hostname


class MachineLook(models.Model):
    """A look at the machine that measures: the request, and the answer of the worker that took it
    (see pgperf.runs.machine_looks).
    """

    queue = models.CharField(max_length=100, blank=True)  # empty: a command on the machine itself
    asked_at = models.DateTimeField()
    host = models.CharField(max_length=80, blank=True)  # the machine; empty: still to be taken
    worker = models.CharField(max_length=200, blank=True)
    taken_at = models.DateTimeField(null=True)
    findings = models.JSONField(default=dict)  # analysis.machine_look.MachineLook
    refusal = models.CharField(max_length=300, blank=True)  # why there are no findings

    class Meta:
        verbose_name = _("machine check")
        verbose_name_plural = _("machine checks")
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.host} · {self.worker or self.queue}"
