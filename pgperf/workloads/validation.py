"""Validates a Workload: either SQL, a registered callable, a query of a model, or a page.

Errors name the field.
"""

from collections.abc import Sequence
from inspect import signature
from typing import Any

from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

from pgperf import catalog, registry
from pgperf.catalog.driver_queries import BULK_INSERTS
from pgperf.core import sql_read_only
from pgperf.core.exceptions import InvalidDefinition
from pgperf.workloads import discovery, pages, queries

#: The fields of a Workload that define a query without code.
QUERY = ("model", "fetch", "lookup", "select_related", "prefetch_related", "ordering", "values", "limit")

_SHIPPED = {name for work in catalog.workloads() for name in (work.orm, work.other_orm)}


def check(workload: Any) -> None:
    """Raises ValidationError if a Workload row is incomplete, contradictory, or does not fit this
    site.
    """
    _check_statements(workload)
    _check_second(workload)
    if workload.path:
        _check_page(workload)
    elif given := pages.parts(workload):
        raise ValidationError(dict.fromkeys(given, _("Only a page has this: enter its path.")))
    elif workload.bulk:
        _check_bulk(workload)
    elif workload.model:
        if workload.sql or workload.orm:
            raise ValidationError({"model": _("Give either a model, or SQL, or a registered callable.")})
        queries.check(workload.query)
    elif workload.orm:
        _check_callable(workload)
    elif not workload.sql:
        raise ValidationError(
            _("Say what one operation does: SQL, a registered callable, a model with a lookup, or a page.")
        )


def _check_statements(workload: Any) -> None:
    """SQL written by a user must be one statement that only reads."""
    for field in ("sql", "other_sql"):
        text = getattr(workload, field)
        try:
            if text:
                sql_read_only.check(field, text)
        except InvalidDefinition as error:
            raise ValidationError({field: str(error).removeprefix(f"{field}: ")}) from None


def _check_bulk(workload: Any) -> None:
    """A bulk operation is one of the catalog's, in the catalog's own table."""
    if workload.bulk not in BULK_INSERTS:
        raise ValidationError(
            {"bulk": _("No bulk insert of that name. Choose one of %s.") % ", ".join(BULK_INSERTS)}
        )
    if workload.sql or workload.orm or workload.model or workload.args:
        raise ValidationError({"bulk": _("Give either a bulk insert, or SQL, a callable or a model.")})
    if workload.fixture != workload.bulk:
        raise ValidationError({"fixture": _("Its table is the fixture %s.") % workload.bulk})


def _check_page(workload: Any) -> None:
    """A page has its own statements, which are captured, and needs no tables of pgperf's own."""
    others = ("sql", "orm", "model", "args", "bulk", "fixture", "other_sql", "other_orm")
    if any(getattr(workload, name) for name in others):
        raise ValidationError(
            {"path": _("Give either a path, or SQL, a callable, a model or a bulk insert.")}
        )
    pages.check(workload.path, workload.page_user)


def _check_callable(workload: Any) -> None:
    """pgperf's own callables need the SQL that they send; the SQL of a site's callables is
    captured.
    """
    if registry.is_own(workload.orm):
        _check_shipped("orm", workload.orm)
        if not workload.sql:
            raise ValidationError({"sql": _("Give the SQL that %s sends.") % workload.orm})
        return
    if workload.sql:
        raise ValidationError({"sql": _("Leave it empty: what %s sends is captured.") % workload.orm})
    _check_registered("orm", workload.orm)
    _check_arguments("args", workload.orm, workload.args)


def _check_second(workload: Any) -> None:
    """The second query of the cold phases."""
    if not workload.other_orm:
        return
    _check_one_owner(workload)
    if registry.is_own(workload.other_orm):
        _check_shipped("other_orm", workload.other_orm)
        return
    _check_registered("other_orm", workload.other_orm)
    _check_arguments("other_args", workload.other_orm, workload.other_args)


def _check_one_owner(workload: Any) -> None:
    """One client runs both queries: with the site's settings, or with pgperf's own alone."""
    if not (workload.orm or workload.model):
        return
    if registry.is_own(workload.orm) and not registry.is_own(workload.other_orm):
        text = _("Name one of pgperf's own callables, like %s.") % workload.orm
    elif registry.is_own(workload.other_orm) and not registry.is_own(workload.orm):
        text = _("Name a callable of this site: the first query uses the site's code or models.")
    else:
        return
    raise ValidationError({"other_orm": text})


def _check_shipped(field: str, name: str) -> None:
    if name not in _SHIPPED:
        raise ValidationError({field: _("pgperf ships no callable of that name.")})


def _check_registered(field: str, name: str) -> None:
    known = discovery.names()
    if name in known:
        return
    failures = "".join(f" {failure}." for failure in discovery.discover())
    listed = ", ".join(known) or _("none")
    text = _("No callable of that name is registered; registered are: %s.") % listed
    raise ValidationError({field: text + failures})


def _check_arguments(field: str, name: str, args: Sequence[Any]) -> None:
    """Each form of the callable takes one argument for each of its parameters."""
    found = registry.find(name)
    for function in filter(None, (found.function, found.asynchronous)):
        parameters = signature(function)
        try:
            parameters.bind(*args)
        except TypeError as error:
            names = {"callable": name, "parameters": ", ".join(parameters.parameters), "error": error}
            text = _("%(callable)s(%(parameters)s) does not take these values: %(error)s.") % names
            raise ValidationError({field: text}) from None
