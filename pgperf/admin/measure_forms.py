"""The forms of *Measure a query of mine*: those of a workload, a benchmark and a run, reduced to what
has no default.

What the user does not see has the value that the whole form proposes, so the same validation holds.
"""

import json
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.forms import BaseForm
from django.http import QueryDict
from django.utils.datastructures import MultiValueDict
from django.utils.text import slugify
from django.utils.translation import gettext_lazy as _

from pgperf.access import permissions
from pgperf.admin.forms import BenchmarkForm
from pgperf.admin.proposal import layers_of, proposed
from pgperf.admin.start_run import StartForm
from pgperf.admin.statements import StatementValues
from pgperf.admin.workload_form import WorkloadForm
from pgperf.models import Benchmark, Database, Run, Workload
from pgperf.reports import statement_lists

#: Access is inherited from the database.
_ACCESS = ("groups", "restricted")
_TITLE, _NAME = 200, 50


@dataclass(frozen=True)
class Kind:
    """A kind of query: its title, and the fields of a workload that describe it, the first of which
    names it. Most queries leave `rarer` fields empty.
    """

    title: Any
    usual: tuple[str, ...]
    rarer: tuple[str, ...] = ()
    permission: str = ""

    @property
    def fields(self) -> tuple[str, ...]:
        return self.usual + self.rarer


KINDS = {
    "callable": Kind(_("Registered callable"), ("orm", "args")),
    "page": Kind(_("Page"), ("path", "page_user", "one_capture")),
    "query": Kind(
        _("Query of a model"),
        ("model", "fetch", "lookup"),
        ("select_related", "prefetch_related", "ordering", "values", "limit"),
    ),
    "statement": Kind(_("Statement of the server"), ("sql", "args"), permission=permissions.MANAGE_TARGETS),
}


class WorkloadPart(WorkloadForm):
    """The workload of one kind; the other kinds' fields are empty."""

    class Meta:
        model = Workload
        field_classes = WorkloadForm.Meta.field_classes
        fields = tuple(name for name in WorkloadForm.Meta.fields if name not in _ACCESS)


class BenchmarkPart(BenchmarkForm):
    """A benchmark of the workload that is saved with it. The user chooses database and routes."""

    class Meta:
        model = Benchmark
        exclude = _ACCESS

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        del self.fields["workloads"]
        databases = permissions.visible(Database.objects.all(), self.user)
        self.fields["database"].queryset = databases  # type: ignore[attr-defined]

    def save_with(self, workload: Workload) -> Benchmark:
        """Save the valid form's benchmark; its one workload must be saved."""
        self.cleaned_data["workloads"] = [workload]
        saved: Benchmark = self.save()
        return saved


@dataclass
class Measured:
    """The forms of one kind of query, from an address or from what the page sent (`is_sent`)."""

    user: Any
    name: str
    kind: Kind
    data: QueryDict
    is_sent: bool

    @cached_property
    def values(self) -> StatementValues | None:
        """The values of a statement of the server; None for the other kinds."""
        if self.name != "statement":
            return None
        if self.is_sent:
            return StatementValues(self.data.get("numbered", ""), self.data)
        return StatementValues(statement_lists.find(self.data.get("statement", ""), self.user))

    @cached_property
    def workload(self) -> WorkloadPart:
        initial = {**self._given, "title": self._title, "name": self._free_name}
        return self._part(WorkloadPart, initial, ("name", *self.kind.fields))

    @cached_property
    def benchmark(self) -> BenchmarkPart:
        own = {"title": self._title, "name": self._free_name, "layers": layers_of(self.name)}
        return self._part(BenchmarkPart, {**self._proposed, **own}, ("name", "database", "routes"))

    @cached_property
    def start(self) -> StartForm:
        databases = permissions.visible(Database.objects.all(), self.user)
        first = {"database": self._proposed["database"], "length": "quick", "token": uuid.uuid4().hex}
        return StartForm(databases, self.data if self.is_sent else None, initial=first)

    @property
    def forms(self) -> tuple[BaseForm, ...]:
        own = (self.workload, self.benchmark, self.start)
        return (*own, self.values) if self.values else own

    def is_valid(self) -> bool:
        return all(form.is_valid() for form in self.forms)

    def known_run(self) -> Run | None:
        """The run of an earlier click on the same page."""
        self.start.is_valid()
        token = self.start.cleaned_data.get("token")
        return Run.objects.filter(request_token=token).first() if token else None

    def other_errors(self) -> list[str]:
        """The errors that the page shows at no field."""
        shown = {"name", *(() if self.values else self.kind.fields)}
        beside = {"routes", "database", *({"name"} & set(self.workload.errors))}
        return [*_listed(self.workload, shown), *_listed(self.benchmark, beside)]

    def _part(self, form: type[Any], initial: Mapping[str, Any], shown: tuple[str, ...]) -> Any:
        """The form for the user; a sent one has the sent values of `shown`, and the proposed ones of
        the others.
        """
        own = type(form.__name__, (form,), {"user": self.user})
        unbound = own(initial=initial)
        if not self.is_sent:
            return unbound
        sent = _unchanged(unbound)
        for name in shown:
            sent.setlist(name, self._sent(name))
        return own(sent)

    def _sent(self, name: str) -> list[str]:
        """What the page sent of a field. Those of a statement are made of its values."""
        if self.values and name == "args":
            return [json.dumps(self.values.args)]
        if self.values and name == "sql":
            return [self.values.sql]
        return self.data.getlist(name)

    @cached_property
    def _given(self) -> dict[str, Any]:
        """The fields of a workload that name the query."""
        if self.values:
            return {"sql": self.values.sql, "args": self.values.args}
        first = self.kind.fields[0]
        return {first: self.data[first]} if first in self.data else {}

    @property
    def _title(self) -> str:
        first = " ".join(self._given.get(self.kind.fields[0], "").split())
        return (first or str(self.kind.title))[:_TITLE]

    @cached_property
    def _free_name(self) -> str:
        return free_name(self._title)

    @cached_property
    def _proposed(self) -> dict[str, Any]:
        return proposed(self.user, self.data.get("database", ""))


def _listed(form: Any, shown: set[str]) -> Iterator[str]:
    """The errors of the fields that are not shown, with their labels."""
    for name, messages in form.errors.items():
        label = f"{form.fields[name].label}: " if name in form.fields else ""
        yield from (f"{label}{message}" for message in messages if name not in shown)


def filled(form: Any) -> Any:
    """The form as it would be sent unchanged; a bound form as it is."""
    return form if form.is_bound else type(form)(_unchanged(form))


def free_name(title: str) -> str:
    """A name after the title that neither a workload nor a benchmark has."""
    base = slugify(title.replace(".", "-").replace("/", "-"))[:_NAME].strip("-_") or "query"
    taken = {
        name
        for model in (Workload, Benchmark)
        for name in model._default_manager.filter(name__startswith=base).values_list("name", flat=True)
    }
    ends = ("", *(f"-{number}" for number in range(2, len(taken) + 3)))
    return next(base + end for end in ends if base + end not in taken)


def _unchanged(form: BaseForm) -> MultiValueDict[str, Any]:
    """What a browser would send of the unchanged form."""
    values = {bound.html_name: bound.value() for bound in form}
    listed = {
        name: value if isinstance(value, list) else [value]
        for name, value in values.items()
        if value is not None and value is not False
    }
    return MultiValueDict(listed)
