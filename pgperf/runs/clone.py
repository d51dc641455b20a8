"""Clones: a new benchmark from another one, or from the definition of a run."""

import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from copy import deepcopy
from functools import partial
from itertools import count
from typing import Any

from django.core.exceptions import ValidationError
from django.db import IntegrityError, models, router, transaction
from django.db.models import QuerySet

from pgperf.core.exceptions import InvalidDefinition
from pgperf.core.records import with_workloads
from pgperf.db import restriction
from pgperf.db.fields import restrict
from pgperf.models import Benchmark, Run, Workload
from pgperf.runs import query_access

#: How often a free name is looked for.
_TRIES = 5
_COPIED = re.compile(r"-copy(-\d+)?$")


def clone(benchmark: Benchmark) -> Benchmark:
    """A clone of the benchmark under a name of its own; every other field is copied."""
    return _under_free_names(partial(_clone, benchmark))


def _clone(benchmark: Benchmark) -> Benchmark:
    copy = Benchmark(**{field.attname: deepcopy(value) for field, value in _values(benchmark)})
    copy.name = free_name(Benchmark, benchmark.name)
    using = router.db_for_write(Benchmark)
    with transaction.atomic(using=using):
        copy.save(using=using, force_insert=True)
        for relation in Benchmark._meta.many_to_many:
            relation.save_form_data(copy, relation.value_from_object(benchmark))
        copy.set_workloads(benchmark.workloads)
        if restriction.is_marked(benchmark):
            restrict(copy)
    return copy


def from_run(run: Run, workloads: QuerySet[Workload], user: Any = None) -> Benchmark:
    """What the run was asked to do, as a benchmark of its own, restricted as the run is.

    It uses those of `workloads` that are still as the run had them, and copies of the others.
    Raises InvalidDefinition where this version of pgperf could not run it, or where the user may
    not send its queries.
    """
    works = _works(run)
    if not works:
        raise InvalidDefinition("workloads: the run's definition names none")
    query_access.check((work.get("query") or {} for work in works), user)
    return _under_free_names(partial(_from_run, run, works, workloads))


def _from_run(run: Run, works: list[dict[str, Any]], workloads: QuerySet[Workload]) -> Benchmark:
    using = router.db_for_write(Benchmark)
    benchmark = Benchmark(
        name=free_name(Benchmark, run.benchmark_name),
        title=run.benchmark.title if run.benchmark else run.benchmark_name,
        description=f"As run {run.pk} was asked to do it.",
        database=run.database,
        **_frozen(Benchmark, _without_test(run.definition)),
    )
    with transaction.atomic(using=using):
        _check(benchmark)
        rows = [_same_workload(frozen, workloads) or _made_workload(run, frozen) for frozen in works]
        benchmark.save(using=using, force_insert=True)
        benchmark.set_workloads(rows)
        _inherit(benchmark, run)
    return benchmark


def needs_workload(run: Run, workloads: QuerySet[Workload]) -> bool:
    """Would `from_run` have to make a workload?"""
    return any(_same_workload(frozen, workloads) is None for frozen in _works(run))


def _under_free_names(make: Callable[[], Benchmark]) -> Benchmark:
    """What it makes, with names that another process may take meanwhile: then it is made anew."""
    for _try in range(_TRIES - 1):
        with suppress(IntegrityError):
            return make()
    return make()


def free_name(model: Any, name: str) -> str:
    """The name with -copy, -copy-2, .. at its end, whichever is free, within the field's length."""
    most = model._meta.get_field("name").max_length
    taken = set(model._default_manager.using(router.db_for_write(model)).values_list("name", flat=True))
    base = _COPIED.sub("", name)
    ends = (f"-copy-{number}" if number > 1 else "-copy" for number in count(1))
    return next(found for end in ends if (found := base[: most - len(end)].rstrip("-_") + end) not in taken)


def _values(row: models.Model) -> Iterable[tuple[Any, Any]]:
    fields = (field for field in row._meta.concrete_fields if not field.primary_key)
    return ((field, getattr(row, field.attname)) for field in fields)


def _frozen(model: type[models.Model], definition: dict[str, Any]) -> dict[str, Any]:
    """The model's own fields as a frozen definition has them."""
    plain = (field.name for field in model._meta.concrete_fields if not field.is_relation)
    found = {name: definition.get(name) for name in plain if name != "name"}
    return {name: deepcopy(value) for name, value in found.items() if value is not None}


def _without_test(definition: dict[str, Any]) -> dict[str, Any]:
    """Without the time budget of a run that tests a verdict: a benchmark would fill it with blocks."""
    return {**definition, "budget_s": 0} if definition.get("ends_after_blocks") else definition


def _works(run: Run) -> list[dict[str, Any]]:
    """The fields of each workload as the run froze them."""
    works = with_workloads(run.definition)["workloads"]
    return [_as_fields(work) for work in works]


def _as_fields(work: dict[str, Any]) -> dict[str, Any]:
    """The fields of a Workload. The name of a bulk insert stands for all of it."""
    page = work.get("page") or {}
    named = {"page_user": page["user"], **page} if page else {}
    bulk = (work.get("bulk") or {}).get("name", "")
    return {**work, **(work.get("query") or {}), **named, "bulk": bulk}


def _same_workload(frozen: dict[str, Any], workloads: QuerySet[Workload]) -> Workload | None:
    row = workloads.filter(name=frozen.get("name", "")).first()
    same = row and all(getattr(row, name) == value for name, value in _frozen(Workload, frozen).items())
    return row if same else None


def _made_workload(run: Run, frozen: dict[str, Any]) -> Workload:
    name = str(frozen.get("name") or run.benchmark_name)
    workload = Workload(name=free_name(Workload, name), title=f"{name}, as run {run.pk} had it"[:200])
    for field, value in _frozen(Workload, frozen).items():
        setattr(workload, field, value)
    _check(workload)
    workload.save(using=router.db_for_write(Workload), force_insert=True)
    _inherit(workload, run)
    return workload


def _inherit(made: Benchmark | Workload, run: Run) -> None:
    """Restrict what was made from the run to the groups that all see what restricts the run.

    What made a run restricted may be gone; then there is none.
    """
    if not restriction.marked(run):
        return
    whole = run.benchmark is not None and run.database is not None
    marks = restriction.marked(run.benchmark, run.database) if whole or not run.restricted else []
    restriction.restrict_to(made, restriction.shared_groups(marks))


def _check(row: models.Model) -> None:
    try:
        row.full_clean(validate_unique=False)  # the names are free; the database says if no longer
    except ValidationError as error:
        name, messages = next(iter(error.message_dict.items()))
        raise InvalidDefinition(f"{name}: {' '.join(messages)}") from None
