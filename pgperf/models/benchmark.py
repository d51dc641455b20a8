"""A benchmark: its workloads, layers and routes, and how a run measures them."""

from collections.abc import Sequence

from django.db import models, transaction
from django.utils.translation import gettext_lazy as _

from pgperf.core import limits
from pgperf.db import fields, validators
from pgperf.db.limited_field import LimitedField, LimitedFloatField
from pgperf.models.database import Database
from pgperf.models.restrictable import Restrictable, groups_field, restricted_field
from pgperf.models.workload import Workload


class Benchmark(Restrictable):
    """A saved definition.

    `migrate` copies those of the catalog once; the site may then change them.
    """

    hidden_with = ("database", "workload_links__workload")

    class Placement(models.TextChoices):
        APART = "apart", _("apart: clients and pooler on some CPUs, the server on the others")
        TOGETHER = "together", _("together: all processes on one CPU")
        SCHEDULER = "scheduler", _("scheduler: the operating system decides")

    class RowType(models.TextChoices):
        TUPLE = "tuple", _("tuple: by position")
        NAMED = "named", _("named: DictCursor of psycopg2, dict_row of psycopg")

    class Transaction(models.TextChoices):
        AUTOCOMMIT = "autocommit", _("autocommit in every driver")
        DRIVER_DEFAULT = "driver_default", _("as the driver has it without settings")

    class BulkApi(models.TextChoices):
        BEST = "best", _("best: the driver's own calls for many rows")
        DBAPI = "dbapi", _("DB-API: executemany, and COPY of CSV text")

    class RateSchedule(models.TextChoices):
        CONSTANT = "constant", _("constant: equal gaps")
        EXPONENTIAL = "exponential", _("exponential: independent arrivals (Poisson)")

    class Idle(models.TextChoices):
        AWAKE = "awake", _("awake: CPUs do not sleep during a run, if the system permits it")
        SYSTEM = "system", _("system: CPUs may sleep, and the times include waking them")

    title = models.CharField(_("title"), max_length=200)
    description = models.TextField(_("description"), blank=True)
    database = models.ForeignKey(
        Database, models.SET_NULL, null=True, blank=True, verbose_name=_("default database")
    )
    layers = models.JSONField(_("layers"), default=list, validators=[validators.layer_list])
    routes = models.JSONField(_("routes"), default=list, validators=[validators.name_list])
    modes = models.JSONField(_("statement modes"), default=list, validators=[validators.mode_list])
    clients = models.JSONField(
        _("clients"),
        default=list,
        validators=[validators.client_list],
        help_text=limits.CLIENTS.help_text,
    )
    connection_modes = models.JSONField(
        _("connection modes"), default=fields.persistent, validators=[validators.connection_mode_list]
    )
    environments = models.JSONField(
        _("environments"),
        default=fields.default_environment,
        validators=[validators.environment_list],
        help_text=_(
            "The Python environments to measure side by side. The first is the baseline. default is the"
            " worker's own; PGPERF['ENVIRONMENTS'] has the others."
        ),
    )
    rates = models.JSONField(
        _("rates (operations/s)"),
        default=fields.closed_loop,
        validators=[validators.rate_list],
        help_text=_(
            "Operations per second of all clients of a variant together. closed: each client sends its next"
            " operation when the last one ends."
        ),
    )
    schedule = models.CharField(
        _("schedule of the rates"),
        max_length=12,
        choices=RateSchedule.choices,
        default=RateSchedule.EXPONENTIAL,
    )
    latency_limit_ms = LimitedFloatField(_("latency limit (ms)"), limit=limits.LATENCY_LIMIT_MS)
    rate_search_ms = LimitedFloatField(_("rate search (p99, ms)"), limit=limits.RATE_SEARCH_MS)
    load_hosts = models.JSONField(
        _("load hosts"),
        default=fields.own_worker,
        validators=[validators.load_host_counts],
        help_text=_(
            "How many hosts make the load together, each by a worker of its own queue. 0: the worker that performs"
            " the run. Several numbers are compared: 0, 1, 4."
        ),
    )
    load_host_names = models.JSONField(
        _("names of load hosts"),
        default=list,
        blank=True,
        validators=[validators.load_host_names],
        help_text=_("Which hosts make the load, in this order. Without names, those that are free."),
    )
    may_lose_hosts = models.BooleanField(
        _("go on without a lost load host"),
        default=False,
        help_text=_("When a load host dies, the others take over its clients. Otherwise the run fails."),
    )
    workers = LimitedField(_("workers"), limit=limits.WORKERS)
    row_type = models.CharField(
        _("row type"),
        max_length=12,
        choices=RowType.choices,
        default=RowType.TUPLE,
        help_text=_(
            "How drivers return rows. asyncpg and libpq have one row type, which this setting does not"
            " change."
        ),
    )
    transaction = models.CharField(
        _("transaction"),
        max_length=20,
        choices=Transaction.choices,
        default=Transaction.AUTOCOMMIT,
        help_text=_("Without autocommit, psycopg2 and psycopg keep a transaction open for a whole slice."),
    )
    bulk_api = models.CharField(
        _("bulk API"),
        max_length=12,
        choices=BulkApi.choices,
        default=BulkApi.BEST,
        help_text=_("The calls that insert many rows, for workloads that do."),
    )
    placement = models.CharField(
        _("placement"), max_length=12, choices=Placement.choices, default=Placement.APART
    )
    idle = models.CharField(_("idle CPUs"), max_length=12, choices=Idle.choices, default=Idle.AWAKE)
    precision = LimitedFloatField(_("target precision (±%)"), limit=limits.PRECISION)
    budget_s = LimitedField(_("time budget (s)"), limit=limits.BUDGET_S)
    blocks = LimitedField(_("blocks"), limit=limits.BLOCKS)
    rounds = LimitedField(_("rounds per block"), limit=limits.ROUNDS)
    slice_ms = LimitedField(_("slice length (ms)"), limit=limits.SLICE_MS)
    diagnostic_ms = LimitedField(_("diagnostic slice (ms)"), limit=limits.DIAGNOSTIC_MS)
    restricted = restricted_field()
    groups = groups_field(
        _("The groups whose members may see it and run it. Members still need the permissions.")
    )

    class Meta:
        verbose_name = _("benchmark")
        verbose_name_plural = _("benchmarks")
        ordering = ["name"]
        permissions = [
            ("import_benchmark", _("Can import benchmarks")),
            ("export_benchmark", _("Can export benchmarks")),
        ]

    @property
    def workloads(self) -> list[Workload]:
        """Its workloads, in order. The benchmark must be saved."""
        links = self.workload_links.all()
        if "workload_links" not in getattr(self, "_prefetched_objects_cache", {}):
            links = links.select_related("workload")
        return [link.workload for link in links]

    def set_workloads(self, rows: Sequence[Workload]) -> None:
        """Let the saved benchmark have these workloads, in this order, and no others."""
        links = BenchmarkWorkload.objects.using(self._state.db).filter(benchmark=self)
        with transaction.atomic(using=links.db):
            for link in links.exclude(workload__in=rows):
                link.benchmark = self  # what the deletion restricts is this row
                link.delete()
            for position, row in enumerate(rows):
                links.update_or_create(benchmark=self, workload=row, defaults={"position": position})
        prefetched = getattr(self, "_prefetched_objects_cache", {})
        prefetched.pop("workload_links", None)


class BenchmarkWorkload(models.Model):
    """One of a benchmark's workloads, at its position."""

    benchmark = models.ForeignKey(
        Benchmark, models.CASCADE, related_name="workload_links", db_index=False, verbose_name=_("benchmark")
    )
    workload = models.ForeignKey(
        Workload, models.PROTECT, related_name="benchmark_links", verbose_name=_("workload")
    )
    position = models.PositiveSmallIntegerField(_("position"))

    class Meta:
        verbose_name = _("workload of a benchmark")
        verbose_name_plural = _("workloads of benchmarks")
        default_permissions = ()
        ordering = ["benchmark", "position", "id"]
        constraints = [
            models.UniqueConstraint(fields=["benchmark", "workload"], name="pgperf_one_link_per_workload")
        ]

    def __str__(self) -> str:
        return f"{self.benchmark} · {self.workload}"
