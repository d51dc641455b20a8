"""The results of a run."""

from django.db import models
from django.utils.translation import gettext_lazy as _

from pgperf.analysis.variant_summary import VariantSummary
from pgperf.core.client_environment import DEFAULT
from pgperf.core.records import VARIANT_FIELDS, Variant
from pgperf.models.run import LABEL_LENGTH, Run


class VariantResult(models.Model):
    """The summary of one variant of one run: one row of the tables and of the CSV.

    Null: unknown.
    """

    run = models.ForeignKey(Run, models.CASCADE, related_name="variants", db_index=False)
    position = models.PositiveSmallIntegerField()
    label = models.CharField(max_length=LABEL_LENGTH)
    workload = models.CharField(max_length=60)
    layer = models.CharField(max_length=30)
    mode = models.CharField(max_length=12)
    route = models.CharField(
        max_length=60
    )  # a target's route, or a delayed route of pgperf.core.delayed_routes
    clients = models.PositiveIntegerField()
    workers = models.PositiveSmallIntegerField(default=1)
    placement = models.CharField(max_length=12)
    connect = models.CharField(max_length=20)
    environment = models.CharField(max_length=30, default=DEFAULT)  # one of PGPERF["ENVIRONMENTS"]
    control = models.PositiveSmallIntegerField(default=0)
    named = models.BooleanField(default=False)  # the run has several workloads, so the label says which
    rate = models.FloatField(null=True)  # operations/s of an open loop; null: closed loop
    schedule = models.CharField(max_length=12, blank=True)  # of the rate
    hosts = models.PositiveSmallIntegerField(default=0)  # load hosts; 0: the run's own worker
    slices = models.PositiveIntegerField(default=0)
    ops = models.PositiveBigIntegerField(default=0)
    rows = models.PositiveBigIntegerField(default=0)
    errors = models.PositiveBigIntegerField(default=0)
    ops_per_s = models.FloatField(null=True)
    rows_per_s = models.FloatField(null=True)
    us_per_op = models.FloatField(null=True)
    us_per_op_low = models.FloatField(null=True)
    us_per_op_high = models.FloatField(null=True)
    latency_us = models.JSONField(default=dict)  # min mean stddev p50 p90 p95 p99 max
    phases_us = models.JSONField(default=dict)  # connect, operate, close; lag, service: each like latency_us
    cold_us = models.JSONField(default=dict)
    cpu_us_per_op = models.JSONField(default=dict)
    cpu_account = models.JSONField(
        default=dict
    )  # shares of the host, run-queue wait, switches, busiest process
    top = models.JSONField(default=dict)  # the host's line and a row per process, as top shows them
    diagnostics = models.JSONField(default=dict)  # wait events, counters of the pooler and of the statements
    verdict = models.JSONField(default=dict)
    http = models.JSONField(default=dict)  # failed requests, kept connections, lengths of bodies
    open_loop = models.JSONField(default=dict)  # what became of the rate; {} for a closed loop

    _record: VariantSummary | None = None
    _identity: Variant | None = None

    class Meta:
        verbose_name = _("variant result")
        verbose_name_plural = _("variant results")
        ordering = ["run", "position"]
        constraints = [models.UniqueConstraint(fields=["run", "label"], name="pgperf_one_result_per_variant")]

    def __str__(self) -> str:
        return self.label

    @property
    def record(self) -> VariantSummary:
        """The row as the record that logic reads."""
        return self._record or VariantSummary.from_json(vars(self))

    def keep_record(self) -> None:
        """Parse the row once, for a reader who does not change it."""
        self._record, self._identity = VariantSummary.from_json(vars(self)), self.identity

    @property
    def identity(self) -> Variant:
        """What was measured, as the plan named it."""
        return self._identity or Variant.of_values(getattr(self, name) for name in VARIANT_FIELDS)

    @property
    def details(self) -> tuple[str, ...]:
        """What its label has after the layer."""
        return self.identity.details


class ComparisonResult(models.Model):
    """A variant and its baseline. `ratio`: time per operation of the variant over the baseline."""

    run = models.ForeignKey(Run, models.CASCADE, related_name="comparisons")
    position = models.PositiveSmallIntegerField()
    variant = models.ForeignKey(VariantResult, models.CASCADE, related_name="comparisons")
    baseline = models.ForeignKey(VariantResult, models.CASCADE, related_name="+")
    ratio = models.FloatField()
    low = models.FloatField(null=True)
    high = models.FloatField(null=True)
    delta_us = models.FloatField()
    delta_low_us = models.FloatField(null=True)
    delta_high_us = models.FloatField(null=True)
    outcome = models.CharField(max_length=20)
    aa = models.BooleanField(default=False)
    pairs = models.PositiveIntegerField()
    sample = models.CharField(max_length=10)  # "rounds" or "blocks"
    mde = models.FloatField(
        null=True
    )  # smallest change of the ratio that would have been detected, e.g. 0.021

    class Meta:
        verbose_name = _("comparison")
        verbose_name_plural = _("comparisons")
        ordering = ["run", "position"]

    def __str__(self) -> str:
        return f"{self.variant} / {self.baseline}"


class ChangePoint(models.Model):
    """A run with which a figure of its benchmark took a new level: a step, which is what a variant
    takes more than the layer below it; the time of the lowest layer; or the headline figure.

    Levels are medians as they were when a later run found the change. `low_us` to `high_us` is the
    95 % interval of their difference. The label of a suite's headline figure names no workload.
    """

    run = models.ForeignKey(Run, models.CASCADE, related_name="changes", db_index=False)
    label = models.CharField(max_length=LABEL_LENGTH)
    below = models.CharField(
        max_length=LABEL_LENGTH, blank=True
    )  # the label of the layer below; empty: the time
    found_by = models.PositiveBigIntegerField()  # the number of the run whose end showed it
    before_us = models.FloatField()
    after_us = models.FloatField()
    low_us = models.FloatField()
    high_us = models.FloatField()
    before_ratio = models.FloatField(null=True)
    after_ratio = models.FloatField(null=True)
    #: Of the headline figure: what each layer's step did at that run, as runs/layer_changes.py has it.
    layers = models.JSONField(null=True)

    class Meta:
        verbose_name = _("change point")
        verbose_name_plural = _("change points")
        default_permissions = ()
        ordering = ["run", "id"]
        constraints = [
            models.UniqueConstraint(fields=["run", "label", "below"], name="pgperf_one_change_per_step")
        ]

    def __str__(self) -> str:
        return f"{self.run_id} · {self.label}"


class BlockResult(models.Model):
    """All variants of one block of a cohort, written when the block ends: a lost run keeps its
    blocks.
    """

    #: The index of the constraint begins with the run and serves these queries too.
    run = models.ForeignKey(Run, models.CASCADE, related_name="blocks", db_index=False)
    attempt = models.PositiveIntegerField()
    cohort = models.PositiveSmallIntegerField()
    block = models.PositiveSmallIntegerField()
    data = models.BinaryField()  # records.VariantBlock per variant, as runs/block_codec.py writes them

    class Meta:
        verbose_name = _("block result")
        verbose_name_plural = _("block results")
        ordering = ["run", "block", "cohort"]
        constraints = [
            models.UniqueConstraint(fields=["run", "cohort", "block"], name="pgperf_one_row_per_block")
        ]

    def __str__(self) -> str:
        return f"{self.run_id} · block {self.block} · cohort {self.cohort}"
