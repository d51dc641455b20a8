"""The tables of definitions and results: fields and constraints only.

`runs.state` changes the state of a Run. `runs.store` writes results.
"""

from collections.abc import Sequence
from dataclasses import fields as fields_of
from datetime import tzinfo
from typing import Any, ClassVar

from django.conf import settings
from django.contrib.auth.models import Group
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models, transaction
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from pgperf.analysis.variant_summary import VariantSummary
from pgperf.core import limits
from pgperf.core.client_environment import DEFAULT
from pgperf.core.records import Variant
from pgperf.core.timetable import EVERY_HOURS, Timetable
from pgperf.db import fields, validators
from pgperf.db.limited_field import LimitedField, LimitedFloatField
from pgperf.workloads import validation

#: Characters of a variant's label with the longest value of each field. Two of them fit an index of
#: MariaDB.
_LABEL = 300


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


def _every(hours: int) -> Any:
    if hours == 24:
        return _("once a day")
    return _("every hour") if hours == 1 else format_lazy(_("every {hours} hours"), hours=hours)


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


#: Fields of a target that only the address of a database has.
_OF_DATABASES = ("pooler", "user", "credential", "allow_cleartext_password")


class Target(models.Model):
    """One route to a Database: `socket`, `tcp`, `pgbouncer`, or the URL of a web server before it."""

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
        blank=True,
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
    url = models.CharField(
        _("URL"),
        max_length=300,
        blank=True,
        validators=[validators.web_url],
        help_text=_(
            "Instead of a host: the site behind a web server, for example https://site.example. One of "
            "PGPERF['WEB_URLS']. The layer http requests pages there."
        ),
    )
    builds_on = models.SlugField(
        _("builds on"),
        max_length=30,
        blank=True,
        help_text=_("The route of the URL that this one differs from in one step. Empty: it builds on none."),
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
        others = {name: getattr(self, name) for name in _OF_DATABASES}
        validators.web_target(self.url, self.host, self.sslrootcert, others)
        if self.url:
            return
        if self.builds_on:
            raise ValidationError({"builds_on": _("Only a target with a URL builds on another.")})
        validators.certificates(self.sslrootcert, self.sslmode)
        validators.own_login(self.user, self.credential)
        validators.cleartext_password(self.allow_cleartext_password, self.sslmode, self.host)


class Workload(_Restrictable):
    """One operation: SQL, a registered callable, a model query without code, or a page."""

    class Fetch(models.TextChoices):
        GET = "get", _("get: one object")
        LIST = "list", _("list: all objects")
        FIRST = "first", _("first: first object")
        COUNT = "count", _("count")
        EXISTS = "exists", _("exists")
        VALUES_LIST = "values_list", _("values list: tuples")

    class Method(models.TextChoices):
        GET = "GET", _("GET: the page")
        HEAD = "HEAD", _("HEAD: its headers")

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
    path = models.CharField(
        _("path"),
        max_length=500,
        blank=True,
        help_text=_("A page of this site with its query string, for example /books/?page=2."),
    )
    method = models.CharField(_("method"), max_length=4, choices=Method.choices, default=Method.GET)
    page_user = models.CharField(
        _("page user"),
        max_length=150,
        blank=True,
        help_text=_("One of the users in PGPERF['PAGE_USERS'], who sees the page. Empty: a visitor."),
    )
    one_capture = models.BooleanField(
        _("one capture"),
        default=False,
        help_text=_(
            "Values may change from request to request, such as the time: the layers below the view send those of "
            "one request."
        ),
    )
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
            "Pythons in which the clients run, side by side: default is the worker's own. PGPERF['ENVIRONMENTS'] has"
            " the others. Comparisons are with the first."
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
    precision = LimitedFloatField(_("target precision (±%)"), limit=limits.PRECISION)
    budget_s = LimitedField(_("time budget (s)"), limit=limits.BUDGET_S)
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


class Schedule(models.Model):
    """The times at which a benchmark runs by itself on a database, as its owner.

    Only pgperf.schedules starts what is due, and writes `due_at` and the fields after it.
    """

    hidden_with: ClassVar[tuple[str, ...]] = ("benchmark", "database")

    class Outcome(models.TextChoices):
        NONE = "", _("not due yet")
        STARTED = "started", _("started")
        SKIPPED = "skipped", _("skipped")
        REFUSED = "refused", _("refused")

    benchmark = models.ForeignKey(
        Benchmark, models.CASCADE, related_name="schedules", verbose_name=_("benchmark")
    )
    database = models.ForeignKey(
        Database, models.CASCADE, related_name="schedules", verbose_name=_("database")
    )
    quick = models.BooleanField(_("quick"), default=False, help_text=_("A shorter run with wider intervals."))
    days = models.JSONField(
        _("days"), default=list, blank=True, validators=[validators.day_list], help_text=_("None: every day.")
    )
    at = models.TimeField(
        _("at"),
        validators=[validators.whole_minute],
        help_text=_("Hours and minutes in the site's time zone, for example 03:15."),
    )
    every_hours = models.PositiveSmallIntegerField(
        _("every"),
        default=24,
        choices=[(hours, _every(hours)) for hours in EVERY_HOURS],
        help_text=_("The other times of a day are these hours before and after that time."),
    )
    enabled = models.BooleanField(_("enabled"), default=True)
    #: db_constraint=False: the user model may live in another database. Null: the user was deleted.
    owner = fields.UserField(
        settings.AUTH_USER_MODEL,
        null=True,
        blank=True,
        editable=False,
        db_constraint=False,
        related_name="+",
        verbose_name=_("owner"),
    )
    #: The name that the owner typed for a production Database; each start checks it again.
    confirmed_name = models.CharField(max_length=60, blank=True, editable=False)
    #: No time before it is due. Null: the schedule is off, or new.
    due_at = models.DateTimeField(_("next due"), null=True, blank=True, editable=False, db_index=True)
    #: The last time that was due, and what came of it.
    last_due_at = models.DateTimeField(_("last due"), null=True, blank=True, editable=False)
    outcome = models.CharField(
        _("outcome"), max_length=10, choices=Outcome.choices, default=Outcome.NONE, blank=True, editable=False
    )
    reason = models.CharField(_("reason"), max_length=500, blank=True, editable=False)

    class Meta:
        verbose_name = _("schedule")
        verbose_name_plural = _("schedules")
        ordering = ["id"]

    def __str__(self) -> str:
        """Without the names of other rows, which not every reader of a log may see."""
        return f"{self._meta.verbose_name} {self.pk}"

    def timetable(self, zone: tzinfo) -> Timetable:
        return Timetable(zone, self.at, tuple(self.days), self.every_hours)


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
    confirms_variant = models.CharField(max_length=_LABEL, blank=True, editable=False)
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
    def partial(self) -> bool:
        """Are its figures those of the blocks that it finished before it ended?"""
        return bool(self.summary.get("partial"))


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


class VariantResult(models.Model):
    """The summary of one variant of one run: one row of the tables and of the CSV.

    Null: unknown.
    """

    run = models.ForeignKey(Run, models.CASCADE, related_name="variants", db_index=False)
    position = models.PositiveSmallIntegerField()
    label = models.CharField(max_length=_LABEL)
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
        self._record = VariantSummary.from_json(vars(self))

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


class ChangePoint(models.Model):
    """A run with which a step of its benchmark took a new level: what a variant takes more than the
    layer below it, or the time of the lowest layer.

    Levels are medians as they were when a later run found the change. `low_us` to `high_us` is the
    95 % interval of their difference.
    """

    run = models.ForeignKey(Run, models.CASCADE, related_name="changes", db_index=False)
    label = models.CharField(max_length=_LABEL)
    below = models.CharField(max_length=_LABEL, blank=True)  # the label of the layer below; empty: the time
    found_by = models.PositiveBigIntegerField()  # the number of the run whose end showed it
    before_us = models.FloatField()
    after_us = models.FloatField()
    low_us = models.FloatField()
    high_us = models.FloatField()
    before_ratio = models.FloatField(null=True)
    after_ratio = models.FloatField(null=True)

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


class Pause(models.Model):
    """While its row is there, no run starts, and the running ones end. Without a row runs start."""

    #: The same in every row: there is at most one.
    switch = models.BooleanField(default=True, unique=True, editable=False)
    reason = models.CharField(_("reason"), max_length=200, blank=True, validators=[validators.one_line])
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
        verbose_name = _("look at a machine")
        verbose_name_plural = _("looks at machines")
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.host} · {self.worker or self.queue}"
