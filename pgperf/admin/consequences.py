"""What a deletion leaves behind, and who may see it then: the delete pages name it."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import Group
from django.db.models import CASCADE, Model, Q, QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from pgperf.access import permissions
from pgperf.db import restriction
from pgperf.db.fields import group_ids, group_ids_of
from pgperf.models import Benchmark, Database, Run, Workload

_SHOWN = 20


@dataclass(frozen=True)
class Consequence:
    """Rows that stay: the names of some that the user may see, and the number of the others."""

    text: str
    names: list[str]
    more: int


def runs_of(row: Model) -> QuerySet[Run]:
    """The runs that are hidden with the row."""
    uses: dict[type[Model], Q] = {
        Database: Q(database=row.pk) | Q(benchmark__database=row.pk),
        Workload: Q(benchmark__workload_links__workload=row.pk),
        Benchmark: Q(benchmark=row.pk),
    }
    return Run.objects.using(row._state.db).filter(uses[type(row)])


def of_deletion(rows: Iterable[Model], user: Any) -> list[Consequence]:
    """What stays when the rows are deleted; of many, the first, as each takes some queries."""
    left = [row for row in rows if isinstance(row, Database | Benchmark)]
    found = []
    for row in left[:_SHOWN]:
        if isinstance(row, Database):
            found += _benchmarks(row, user)
        found += _runs(row, user)
    return [*found, *_untold(len(left) - _SHOWN)]


def _untold(count: int) -> list[Consequence]:
    text = ngettext(
        "%d more row is deleted; what it leaves behind is not listed here.",
        "%d more rows are deleted; what they leave behind is not listed here.",
        count,
    )
    return [Consequence(text % count, [], 0)] if count > 0 else []


def deletion_counts(runs: Sequence[Run]) -> dict[Any, int]:
    """How many rows are deleted with the runs, by the plural name of their model."""
    found = {Run._meta.verbose_name_plural: len(runs)}
    for relation in Run._meta.related_objects:
        if relation.on_delete is CASCADE:
            rows = relation.related_model._default_manager.filter(**{f"{relation.field.name}__in": runs})
            found[relation.related_model._meta.verbose_name_plural] = rows.count()
    return {name: count for name, count in found.items() if count}


def _benchmarks(database: Database, user: Any) -> list[Consequence]:
    """In as many queries for one benchmark as for many."""
    left = Benchmark.objects.using(database._state.db).filter(database=database)
    seen = set(permissions.visible(left, user).values_list("pk", flat=True))
    by_text: dict[str, list[Benchmark]] = {}
    for benchmark, text in _benchmark_texts(database, list(left)):
        by_text.setdefault(text, []).append(benchmark)
    return [_told(text, rows, seen) for text, rows in by_text.items()]


def _benchmark_texts(database: Database, left: Sequence[Benchmark]) -> Iterator[tuple[Benchmark, str]]:
    """What becomes of each benchmark."""
    if not restriction.is_marked(database):
        text = _("Benchmarks that lose the default database %s:") % database
        yield from ((benchmark, text) for benchmark in left)
        return
    groups, own = set(group_ids(database)), group_ids_of(left)
    found = Group.objects.filter(pk__in=groups).order_by("name").values_list("pk", "name")
    named = dict(found) if left else {}
    text = _("Benchmarks that lose the default database %(row)s. Then only %(who)s may see them:")
    for benchmark in left:
        is_marked = benchmark.restricted or own[benchmark.pk]
        kept = groups & own[benchmark.pk] if is_marked else groups
        names = ", ".join(name for pk, name in named.items() if pk in kept)
        who = _("superusers and members of %s") % names if names else _("superusers")
        yield benchmark, text % {"row": database, "who": who}


def _runs(row: Database | Benchmark, user: Any) -> list[Consequence]:
    name = str(row._meta.model_name)
    runs = Run.objects.using(row._state.db).filter(**{name: row.pk})
    hidden = runs if restriction.marked(row) else runs.filter(restricted=True)
    unchanged = runs.exclude(pk__in=hidden.values("pk"))
    told = [(_("Runs of %s that only superusers may see then:") % row, hidden)]
    if isinstance(row, Database):
        told += _under_way(row, runs)
        unchanged = unchanged.exclude(status__in=(Run.Status.QUEUED, Run.Status.RUNNING))
    told.append((_("Runs of %s that stay as they are:") % row, unchanged))
    return [_listed(text, found, user) for text, found in told if found.exists()]


def _under_way(database: Database, runs: QuerySet[Run]) -> list[tuple[str, QuerySet[Run]]]:
    """What becomes of runs that have not ended: a run reads its database's routes when it starts."""
    queued, running = (runs.filter(status=each) for each in (Run.Status.QUEUED, Run.Status.RUNNING))
    return [
        (_("Queued runs of %s, which will fail:") % database, queued),
        (_("Runs of %s under way, which go on:") % database, running),
    ]


def _told(text: str, rows: Sequence[Model], seen: Collection[Any]) -> Consequence:
    """`seen`: the primary keys of the rows that the user may see."""
    names = [str(row) for row in rows if row.pk in seen][:_SHOWN]
    return Consequence(text, names, len(rows) - len(names))


def _listed(text: str, rows: QuerySet[Any], user: Any) -> Consequence:
    shown = permissions.visible(rows, user)[:_SHOWN]
    names = [str(row) for row in shown]
    return Consequence(text, names, rows.count() - len(names))
