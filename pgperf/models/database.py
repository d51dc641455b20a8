"""A PostgreSQL database, and the routes to it."""

from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.utils.translation import gettext_lazy as _

from pgperf.db import validators
from pgperf.models.restrictable import Restrictable, groups_field, restricted_field

#: Fields of a target that only the address of a database has.
_OF_DATABASES = ("pooler", "user", "credential", "allow_cleartext_password")


class Database(Restrictable):
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
    restricted = restricted_field()
    groups = groups_field(
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
        help_text=_(
            "The route of the configuration that this one changes in one respect. pgperf compares the two."
            " Empty: none."
        ),
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
