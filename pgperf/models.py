"""The tables of definitions and results: fields and constraints only.

`runs.state` changes the state of a Run. `runs.store` writes results.
"""

from collections.abc import Sequence
from dataclasses import fields as fields_of
from typing import Any, ClassVar

from django.conf import settings
from django.contrib.auth.models import Group
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models, transaction
from django.utils.translation import gettext_lazy as _

from pgperf.analysis.variant_summary import VariantSummary
from pgperf.core import limits
from pgperf.core.records import Variant
from pgperf.db import fields, validators
from pgperf.db.limited_field import LimitedField
from pgperf.workloads import validation


def _restricted() -> "models.BooleanField[bool, bool]":
    return models.BooleanField(
        _("restricted"),
        default=False,
        help_text=_(
            "Only members of the groups and superusers may see it; without groups, only superusers. "
            "Choosing groups ticks this box. Only a superuser may untick it."
        ),
    )


def _groups(help_text: Any) -> fields.GroupsField:
    """db_constraint=False: groups may live in another database."""
    return fields.GroupsField(
        Group,
        verbose_name=_("groups"),
        blank=True,
        db_constraint=False,
        related_name="+",
        help_text=help_text,
    )


class _Restrictable(models.Model):
    """A definition that groups may hide (see pgperf.db.restriction)."""

    #: The same words whether the user may see the row of that name or not.
    name = models.SlugField(
        _("name"),
        max_length=60,
        unique=True,
        error_messages={"unique": _("This name is not available. Choose another name.")},
    )

    #: Foreign keys to rows that it is hidden with.
    hidden_with: ClassVar[tuple[str, ...]] = ()

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return self.name


class Database(_Restrictable):
    """A PostgreSQL database to measure."""

    dbname = models.CharField(_("database name"), max_length=63, validators=[validators.plain_text])
    user = models.CharField(
        _("user"),
        max_length=63,
        blank=True,
        validators=[validators.plain_text],
        help_text=_("Empty: the user of the DATABASES alias that the credential names."),
    )
    credential = models.CharField(
        _("credential"),
        max_length=120,
        validators=[validators.credential_reference],
        help_text=_(
            "A reference to the password: alias:NAME (an entry of DATABASES), env:PGPERF_SECRET_NAME, "
            "or file:NAME in PGPERF['SECRETS_DIR']. Do not enter the password itself."
        ),
    )
    production = models.BooleanField(
        _("production"), default=False, help_text=_("To start a run, the user must type the database name.")
    )
    allow_fixtures = models.BooleanField(
        _("allow fixtures"),
        default=False,
        help_text=_("pgperf may create tables in a schema named pgperf."),
    )
    agent = models.SlugField(
        _("agent"),
        max_length=40,
        blank=True,
        help_text=_(
            "The name of the pgperf agent on the server's machine, if that is not the worker's machine. "
            "An agent is a worker on the queue pgperf-agent-NAME. Without it, the server's CPU time is "
            "unknown."
        ),
    )
    notes = models.TextField(_("notes"), blank=True)
    restricted = _restricted()
    groups = _groups(
        _("The groups whose members may see it and run benchmarks on it. Members still need the permissions.")
    )

    class Meta:
        verbose_name = _("database")
        verbose_name_plural = _("databases")
        ordering = ["name"]
        permissions = [
            ("import_database", _("Can import databases")),
            ("export_database", _("Can export databases")),
            ("manage_targets", _("Can manage the addresses and logins of databases")),
        ]


class Target(models.Model):
    """One route to a Database: `socket`, `tcp`, `pgbouncer`, ..."""

    class Pooler(models.TextChoices):
        NONE = "", _("none")
        SESSION = "session", _("session pooling")
        TRANSACTION = "transaction", _("transaction pooling")

    class SSLMode(models.TextChoices):
        DISABLE = "disable"
        PREFER = "prefer"
        REQUIRE = "require"
        VERIFY_CA = "verify-ca"
        VERIFY_FULL = "verify-full"

    database = models.ForeignKey(Database, models.CASCADE, related_name="targets", verbose_name=_("database"))
    route = models.SlugField(
        _("route"), max_length=30, help_text=_("socket, tcp, pgbouncer, or any other name.")
    )
    host = models.CharField(
        _("host"),
        max_length=255,
        validators=[validators.host],
        help_text=_("A host name, an IP address, or the directory of a Unix socket."),
    )
    port = models.PositiveIntegerField(
        _("port"), default=5432, validators=[MinValueValidator(1), MaxValueValidator(65535)]
    )
    sslmode = models.CharField(_("sslmode"), max_length=12, choices=SSLMode.choices, default=SSLMode.PREFER)
    sslrootcert = models.CharField(
        _("sslrootcert"),
        max_length=100,
        blank=True,
        validators=[validators.file_name],
        help_text=_(
            "The name of a file in PGPERF['SECRETS_DIR'] with the certificates to verify the server by. "
            "Empty: libpq's default, ~/.postgresql/root.crt of the worker's user."
        ),
    )
    allow_cleartext_password = models.BooleanField(
        _("allow clear-text password"),
        default=False,
        help_text=_(
            "The server may ask for the password in clear text, as it does for LDAP, PAM, RADIUS and tokens. "
            "Needs sslmode verify-full."
        ),
    )
    pooler = models.CharField(
        _("pooler"), max_length=12, choices=Pooler.choices, default=Pooler.NONE, blank=True
    )
    user = models.CharField(
        _("user"),
        max_length=63,
        blank=True,
        validators=[validators.plain_text],
        help_text=_("A separate login for this route; enter its credential too. Empty: the database's user."),
    )
    credential = models.CharField(
        _("credential"),
        max_length=120,
        blank=True,
        validators=[validators.credential_reference],
        help_text=_("The reference to the password of this route's user. Empty: the database's credential."),
    )
    enabled = models.BooleanField(_("enabled"), default=True)

    class Meta:
        verbose_name = _("target")
        verbose_name_plural = _("targets")
        ordering = ["database", "id"]
        constraints = [
            models.UniqueConstraint(fields=["database", "route"], name="pgperf_one_target_per_route")
        ]

    def __str__(self) -> str:
        return f"{self.database} · {self.route}"

    def clean(self) -> None:
        """Raises ValidationError by field."""
        super().clean()
        validators.certificates(self.sslrootcert, self.sslmode)
        validators.own_login(self.user, self.credential)
        validators.cleartext_password(self.allow_cleartext_password, self.sslmode, self.host)


class Workload(_Restrictable):
    """One operation: SQL, a registered callable, or a model query without code."""

    class Fetch(models.TextChoices):
        GET = "get", _("get: one object")
        LIST = "list", _("list: all objects")
        FIRST = "first", _("first: first object")
        COUNT = "count", _("count")
        EXISTS = "exists", _("exists")
        VALUES_LIST = "values_list", _("values list: tuples")

    title = models.CharField(_("title"), max_length=200)
    sql = models.TextField(
        _("SQL"),
        blank=True,
        help_text=_("One statement, with %s for each of the arguments above."),
    )
    args = models.JSONField(_("arguments"), default=list, blank=True, validators=[validators.scalar_list])
    orm = models.CharField(
        _("ORM callable"),
        max_length=100,
        blank=True,
        help_text=_(
            "A callable registered with @workload. pgperf captures its statements, and the layers below "
            "the ORM run them."
        ),
    )
    model = models.CharField(
        _("model"), max_length=200, blank=True, help_text=_("The model that a query without code reads.")
    )
    fetch = models.CharField(_("fetch"), max_length=12, choices=Fetch.choices, default=Fetch.GET)
    lookup = models.JSONField(
        _("lookup"),
        default=dict,
        blank=True,
        help_text=_('Arguments of filter() as JSON: {"isbn": "9790000000001"} or {"year__gte": 2000}.'),
    )
    select_related = models.JSONField(_("select related"), default=list, blank=True)
    prefetch_related = models.JSONField(_("prefetch related"), default=list, blank=True)
    ordering = models.JSONField(_("ordering"), default=list, blank=True)
    values = models.JSONField(
        _("values"),
        default=list,
        blank=True,
        help_text=_("Fields that values_list() returns. Empty: all fields."),
    )
    limit = models.PositiveIntegerField(_("limit"), default=0, help_text=_("0: no limit."))
    other_sql = models.TextField(
        _("second SQL"), blank=True, help_text=_("The second query of the cold phases.")
    )
    other_args = models.JSONField(
        _("second arguments"), default=list, blank=True, validators=[validators.scalar_list]
    )
    other_orm = models.CharField(_("second ORM callable"), max_length=100, blank=True)
    bulk = models.CharField(
        _("bulk insert"),
        max_length=60,
        blank=True,
        help_text=_(
            "Many rows at once instead of a statement: copyfrom or batch. They go into a table of pgperf's own."
        ),
    )
    fixture = models.CharField(
        _("fixture"),
        max_length=60,
        blank=True,
        help_text=_("The name of the tables and rows that pgperf creates for it. Empty: it needs none."),
    )
    restricted = _restricted()
    groups = _groups(
        _(
            "The groups whose members may see it, and the benchmarks that use it. Members still need the "
            "permissions."
        )
    )

    class Meta:
        verbose_name = _("workload")
        verbose_name_plural = _("workloads")
        ordering = ["name"]
        permissions = [
            ("import_workload", _("Can import workloads")),
            ("export_workload", _("Can export workloads")),
        ]

    def clean(self) -> None:
        """Raises ValidationError by field."""
        super().clean()
        validation.check(self)

    @property
    def query(self) -> dict[str, Any]:
        """The model query as pgperf.workloads.queries expects it; empty for other kinds of
        workload.
        """
        return {name: getattr(self, name) for name in validation.QUERY} if self.model else {}


class Benchmark(_Restrictable):
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
    workers = LimitedField(_("workers"), limit=limits.WORKERS)
    row_type = models.CharField(
        _("row type"),
        max_length=12,
        choices=RowType.choices,
        default=RowType.TUPLE,
        help_text=_("How drivers give rows. asyncpg and libpq have one type, which is both."),
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
    blocks = LimitedField(_("blocks"), limit=limits.BLOCKS)
    rounds = LimitedField(_("rounds per block"), limit=limits.ROUNDS)
    slice_ms = LimitedField(_("slice length (ms)"), limit=limits.SLICE_MS)
    diagnostic_ms = LimitedField(_("diagnostic slice (ms)"), limit=limits.DIAGNOSTIC_MS)
    restricted = _restricted()
    groups = _groups(_("The groups whose members may see it and run it. Members still need the permissions."))

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
        return [link.workload for link in self.workload_links.all()]

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
    #: The database while the run is running, otherwise null: one run at a time per database.
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
    confirms_variant = models.CharField(max_length=200, blank=True, editable=False)
    intervention = models.CharField(max_length=30, blank=True, editable=False)
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
    def partial(self) -> bool:
        """Are its figures those of the blocks that it finished before it ended?"""
        return bool(self.summary.get("partial"))


class Sampling(models.Model):
    """The requests of a run to the agent on its database's host, and the answers (see
    pgperf.agent).
    """

    #: The index of the constraint begins with the run.
    run = models.ForeignKey(Run, models.CASCADE, related_name="samplings", db_index=False)
    attempt = models.PositiveIntegerField()
    queue = models.CharField(max_length=100)
    agent = models.CharField(max_length=200, blank=True)  # the worker that accepted it
    refusal = models.CharField(max_length=300, blank=True)  # why it cannot serve
    order = models.JSONField(default=dict)
    order_number = models.PositiveIntegerField(default=0)
    answer = models.JSONField(default=dict)
    answer_number = models.PositiveIntegerField(default=0)  # order_number of the order that it answers
    readings = models.BinaryField(default=b"")  # runner.readings, packed

    class Meta:
        verbose_name = _("sampling")
        verbose_name_plural = _("samplings")
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(fields=["run", "attempt"], name="pgperf_one_sampling_per_attempt")
        ]

    def __str__(self) -> str:
        return f"{self.run_id} · attempt {self.attempt} · {self.queue}"


class VariantResult(models.Model):
    """The summary of one variant of one run: one row of the tables and of the CSV.

    Null: unknown.
    """

    run = models.ForeignKey(Run, models.CASCADE, related_name="variants", db_index=False)
    position = models.PositiveSmallIntegerField()
    label = models.CharField(max_length=200)
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
    control = models.PositiveSmallIntegerField(default=0)
    named = models.BooleanField(default=False)  # the run has several workloads, so the label says which
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
    phases_us = models.JSONField(default=dict)  # connect, operate, close: each like latency_us
    cold_us = models.JSONField(default=dict)
    cpu_us_per_op = models.JSONField(default=dict)
    cpu_account = models.JSONField(
        default=dict
    )  # shares of the host, run-queue wait, switches, busiest process
    top = models.JSONField(default=dict)  # the host's line and a row per process, as top shows them
    diagnostics = models.JSONField(default=dict)  # wait events, counters of the pooler and of the statements
    verdict = models.JSONField(default=dict)

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
        return VariantSummary.from_json(vars(self))

    @property
    def identity(self) -> Variant:
        """What was measured, as the plan named it."""
        return Variant(**{each.name: getattr(self, each.name) for each in fields_of(Variant)})

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


class Pause(models.Model):
    """While its row is there, no run starts, and the running ones end. Without a row runs start."""

    #: The same in every row: there is at most one.
    switch = models.BooleanField(default=True, unique=True, editable=False)
    reason = models.CharField(_("reason"), max_length=200, blank=True, validators=[validators.plain_text])
    by = models.CharField(_("paused by"), max_length=150, editable=False)
    since = models.DateTimeField(_("since"), editable=False)

    class Meta:
        verbose_name = _("pause")
        verbose_name_plural = _("pause")
        default_permissions = ("add", "delete", "view")

    def __str__(self) -> str:
        return f"{self._meta.verbose_name}: {self.reason or self.by}"


class Worker(models.Model):
    """A Celery worker that can run benchmarks, as it described itself at its start."""

    hostname = models.CharField(_("hostname"), max_length=200, unique=True)
    queue = models.CharField(_("queue"), max_length=100)
    layers = models.JSONField(_("layers"), default=dict)  # layer -> reason why it cannot run, "" if it can
    versions = models.JSONField(_("versions"), default=dict)
    last_seen = models.DateTimeField(_("last seen"))

    class Meta:
        verbose_name = _("worker")
        verbose_name_plural = _("workers")
        ordering = ["hostname"]

    def __str__(self) -> str:
        return self.hostname
