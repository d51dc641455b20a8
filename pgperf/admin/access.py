"""Access rules shared by all pages: the allowed methods, and the rows that the user's groups allow."""

from typing import Any

from django.contrib import admin
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.utils import NestedObjects
from django.core.exceptions import SuspiciousOperation
from django.db import DataError, ProgrammingError, router
from django.db.models import ForeignKey, Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern
from django.utils.text import capfirst
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods

from pgperf.access import permissions
from pgperf.admin import consequences

METHODS = ["GET", "HEAD", "POST"]
_DIGITS = 18
#: What Python raises where a query is made of a value that its field takes.
_REFUSED = (ValueError, OverflowError, IndexError)


class GroupScopedAdmin(admin.ModelAdmin):
    """A ModelAdmin that shows only the rows and choices that the user's groups allow."""

    @property
    def urls(self) -> list[URLPattern]:
        """Every view answers other methods than these with 405."""
        patterns = self.get_urls()
        for pattern in patterns:
            pattern.callback = require_http_methods(METHODS)(pattern.callback)
        return patterns

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return permissions.visible(super().get_queryset(request), request.user)

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        """Answer a filter with a NUL with 400: PostgreSQL refuses it, and Django would answer 500.

        The list counts its rows here. A value that no query can have is answered as one that no field
        can have.
        """
        if any("\0" in value for values in request.GET.lists() for value in values[1]):
            raise SuspiciousOperation("a filter has a NUL character")
        try:
            return super().get_changelist_instance(request)
        except (*_REFUSED, DataError, ProgrammingError) as error:
            if not request.GET:
                raise
            raise IncorrectLookupParameters(error) from error

    def response_action(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse | None:
        """Answer a selected primary key that is not a number with 400; Django would answer 500."""
        for number in request.POST.getlist(ACTION_CHECKBOX_NAME):
            if not (number.isascii() and number.isdigit() and len(number) <= _DIGITS):
                raise SuspiciousOperation("a selected primary key is not a number")
        response = super().response_action(request, *args, **kwargs)
        context = getattr(response, "context_data", None) or {}
        if "deletable_objects" in context:
            context["consequences"] = consequences.of_deletion(context["queryset"], request.user)
        return response

    def render_delete_form(self, request: HttpRequest, context: dict[str, Any]) -> HttpResponse:
        stays = consequences.of_deletion([context["object"]], request.user)
        return super().render_delete_form(request, {**context, "consequences": stays})

    def formfield_for_foreignkey(
        self, db_field: ForeignKey[Any, Any], request: HttpRequest, **kwargs: Any
    ) -> Any:
        """Offer only the rows that the lists show."""
        model = db_field.related_model
        if model in permissions.SCOPED:
            kwargs["queryset"] = permissions.visible(model._default_manager.all(), request.user)
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Name the benchmarks that protect a workload, only to users who may see them."""
        to_delete, counts, lacking, protected = super().get_deleted_objects(objs, request)
        if protected:
            collector = NestedObjects(using=router.db_for_write(self.model))
            collector.collect(objs)
            owners = {getattr(row, "benchmark", row): None for row in collector.protected}
            protected = [_named(row, request.user) for row in owners]
        return to_delete, counts, lacking, protected


def _named(row: Model, user: Any) -> str:
    kind = capfirst(row._meta.verbose_name)
    return f"{kind}: {row if permissions.may_see(user, row) else gettext('one that your groups may not see')}"
