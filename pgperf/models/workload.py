"""What a benchmark measures: SQL, a query of the site, a callable or a page."""

from typing import Any

from django.db import models
from django.utils.translation import gettext_lazy as _

from pgperf.db import validators
from pgperf.models.restrictable import Restrictable, groups_field, restricted_field
from pgperf.workloads import validation


class Workload(Restrictable):
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
        help_text=_("One statement, with %s for each value of the field Arguments."),
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
    restricted = restricted_field()
    groups = groups_field(
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
