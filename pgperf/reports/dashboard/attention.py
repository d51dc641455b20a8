"""What needs attention, each with its remedy."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlencode

from django.db.models.fields.json import KeyTextTransform
from django.template.defaultfilters import filesizeformat
from django.utils.text import Truncator
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from pgperf import schedules
from pgperf.analysis.grade import GradeWord
from pgperf.analysis.verdict_kinds import grade_sentence
from pgperf.models import Benchmark, Database, Run, Schedule, Worker
from pgperf.reports import number_format
from pgperf.reports.dashboard.headlines import Headline
from pgperf.reports.dashboard.slower import slower
from pgperf.reports.dashboard.viewer import Viewer
from pgperf.reports.dashboard.workers import Workers, other_versions
from pgperf.reports.labels import variant_title
from pgperf.reports.next_steps import remedy
from pgperf.reports.run_json import worker_command
from pgperf.reports.run_names import named_each
from pgperf.runs import broker, retention
from pgperf.runs.change_text import since

Outcome = Schedule.Outcome
#: Rows that one kind of concern names; the lists have the others.
MOST_ROWS = 5
_MOST_TEXT = 200
#: Raw blocks of some thousands of runs.
MUCH_BYTES = 2**30


@dataclass(frozen=True)
class Concern:
    """`remedy` says what to do, `command` is one to type. `run`, `database` and `schedule` are rows
    to link to, by primary key; `history` is the benchmark whose results over runs to link to, and the
    `query` of that page. `rows` names the list to link to, with its `query`.
    """

    subject: str
    text: str = ""
    remedy: str = ""
    command: str = ""
    run: int | None = None
    database: int | None = None
    schedule: int | None = None
    history: int | None = None
    rows: Literal["", "run", "benchmark", "schedule"] = ""
    query: str = ""
    level: Literal["warning", "error"] = "warning"


@dataclass(frozen=True)
class Facts:
    """What concerns are made from. `done`: the newest done run of each database; `shown`: the figures
    of those on the page; `broken`: runs that failed or were lost; `silent`: active runs whose worker
    is silent; `is_new`: the first steps say how to start a worker.
    """

    databases: Sequence[Database]
    done: Sequence[int]
    shown: Sequence[Headline]
    broken: Sequence[int]
    silent: Sequence[Run]
    workers: Workers
    is_new: bool = False


def concerns(viewer: Viewer, facts: Facts) -> list[Concern]:
    """The gravest first, in at most thirteen queries."""
    return [
        *_lost(viewer, facts.broken, facts.silent),
        *([] if facts.is_new else _no_worker(viewer, facts.workers)),
        *_agents(facts.databases, facts.workers),
        *_versions(viewer, facts.workers),
        *_slower(viewer),
        *_disturbed(facts.shown),
        *_writers(viewer, facts.databases, facts.done),
        *_not_started(viewer),
        *_not_asked(viewer),
        *_storage(viewer),
        *_kept_for_ever(viewer),
    ]


def _lost(viewer: Viewer, broken: Sequence[int], silent: Sequence[Run]) -> Iterator[Concern]:
    """In one query, or two where an error names other runs."""
    rows = viewer.rows(Run).filter(pk__in=broken[:MOST_ROWS]).order_by("-pk")
    ended = list(rows.only("benchmark_name", "database_name", "status", "error"))
    errors = named_each([run.error for run in ended], viewer.user)
    for run in silent[:MOST_ROWS]:
        text = _("Its worker is silent, so it counts as lost.")
        yield Concern(_on(run), text, _lost_remedy(), run=run.pk, level="error")
    for run, error in zip(ended, errors, strict=True):
        is_lost = run.status == Run.Status.LOST
        remedy = _lost_remedy() if is_lost else _("Correct the cause, then run the benchmark again.")
        yield Concern(_on(run), _first_line(error), remedy, run=run.pk, level="error")
    more = sum(max(0, len(each) - MOST_ROWS) for each in (broken, silent))
    if more:
        text = ngettext("And %d more run failed or was lost", "And %d more runs failed or were lost", more)
        # The list settles first which of the silent ones are lost.
        yield Concern(text % more, rows="run", query="status__in=failed,lost", level="error")


def _on(run: Run) -> str:
    status = {Run.Status.FAILED: _("%(run)s on %(database)s failed")}
    text = status.get(Run.Status(run.status), _("%(run)s on %(database)s was lost"))
    return text % {"run": run, "database": run.database_name}


def _lost_remedy() -> str:
    return _("See the worker’s log, then run the benchmark again.")


def _no_worker(viewer: Viewer, workers: Workers) -> Iterator[Concern]:
    if not workers.workers and (viewer.sees(Run) or viewer.may_start):
        text = _("A requested run waits until a worker starts.")
        yield Concern(
            _("No worker is online"), text, _("Start one in the site’s directory:"), worker_command()
        )


def _agents(databases: Iterable[Database], workers: Workers) -> Iterator[Concern]:
    online = {agent.queue for agent in workers.agents}
    for database in databases:
        queue = broker.agent_queue(database.agent)
        if database.agent and queue not in online:
            names = {"agent": database.agent, "database": database}
            yield Concern(
                _("The agent %(agent)s of %(database)s is not online") % names,
                _("Without it, the server’s CPU time is unknown."),
                _("Start it on the database’s host:"),
                worker_command(queue),
                database=database.pk,
            )


def _versions(viewer: Viewer, workers: Workers) -> Iterator[Concern]:
    if not viewer.sees(Worker):
        return
    found = [(worker, other_versions(worker)) for worker in (*workers.workers, *workers.load_hosts)]
    found += [(agent, other_versions(agent, agent=True)) for agent in workers.agents]
    for worker, differ in found:
        if differ:
            subject = _("Versions of %s differ from those of this site") % worker.hostname
            yield Concern(subject, f"{differ}.", _("Install the same versions there, and restart it."))


def _slower(viewer: Viewer) -> Iterator[Concern]:
    """In at most three queries."""
    found = slower(viewer)
    for each in found[:MOST_ROWS]:
        run = each.run
        names = {"benchmark": run.benchmark_name, "database": run.database_name}
        numbers = number_format.in_one_unit(before=each.before_us, after=each.after_us)
        levels = _("%(after)s instead of %(before)s %(unit)s per operation (%(ratio)s)") % {
            **numbers,
            "ratio": number_format.ratio(each.ratio),
        }
        remedy = _("Its results over runs say which layers changed, and what changed around them.")
        line = {"database": run.database_id, "definition": run.definition_hash}
        links = viewer.sees(Benchmark)
        yield Concern(
            _("%(benchmark)s on %(database)s got slower") % names,
            f"{since(each.before_us, each.after_us, run)}: {levels}.",
            remedy,
            run=None if links else run.pk,
            history=run.benchmark_id if links else None,
            query=urlencode(line),
        )
    if (more := len(found) - MOST_ROWS) > 0:
        text = ngettext("And %d more benchmark got slower", "And %d more benchmarks got slower", more)
        yield Concern(text % more, rows="benchmark" if viewer.sees(Benchmark) else "")


def _disturbed(shown: Iterable[Headline]) -> Iterator[Concern]:
    """Newest runs whose figures other processes changed."""
    for head in shown:
        row, worst = head.most_disturbed
        if row and worst.word == GradeWord.POOR:
            names = {"run": head.run, "database": head.run.database_name}
            yield Concern(
                _("%(run)s on %(database)s was much disturbed") % names,
                f"{variant_title(row)}: {grade_sentence(worst)}.",
                remedy(worst),
                run=head.run.pk,
            )


def _writers(viewer: Viewer, databases: Sequence[Database], done: Sequence[int]) -> Iterator[Concern]:
    """The logins that could write when the newest run of their database looked, in one query."""
    rows = viewer.rows(Run).filter(pk__in=done).order_by("database_name")
    role = KeyTextTransform("can_write", "environment")
    shown = {database.pk for database in databases}
    for name, database, writer in rows.values_list("database_name", "database_id", role):
        if writer and database in shown:
            yield Concern(
                _("The role %(role)s of %(database)s can write") % {"role": writer, "database": name},
                _("pgperf opens read-only sessions for it; a role that cannot write is safer."),
                _("This command prints the SQL of such a role:"),
                "python manage.py pgperf doctor",
                database=database,
            )


def _not_started(viewer: Viewer) -> Iterator[Concern]:
    """Schedules that started no run when they were due last, in one query."""
    rows = viewer.rows(Schedule).filter(enabled=True, outcome__in=(Outcome.REFUSED, Outcome.SKIPPED))
    found = list(rows.select_related("benchmark", "database").order_by("-last_due_at"))
    for row in found[:MOST_ROWS]:
        names = {"schedule": row.pk, "benchmark": row.benchmark, "database": row.database}
        subject = _("Schedule %(schedule)d, %(benchmark)s on %(database)s, started no run") % names
        refused = _("Correct the cause. Saving the schedule makes you its owner.")
        remedy = refused if row.outcome == Outcome.REFUSED else _("It starts the next run when that is due.")
        yield Concern(subject, _first_line(row.reason), remedy, schedule=row.pk)
    if (more := len(found) - MOST_ROWS) > 0:
        text = ngettext("And %d more schedule started no run", "And %d more schedules started no run", more)
        yield Concern(text % more, rows="schedule", query="enabled__exact=1&outcome__in=refused,skipped")


def _not_asked(viewer: Viewer) -> Iterator[Concern]:
    """In one query."""
    if late := schedules.overdue(viewer.rows(Schedule)).first():
        text = _("Nothing has looked for due schedules for %d minutes.") % (schedules.GRACE.seconds // 60)
        remedy = _("Run this command every minute by cron, or the task pgperf.due by Celery beat:")
        yield Concern(
            _("Schedules do not start"), text, remedy, "python manage.py pgperf due", schedule=late.pk
        )


def _storage(viewer: Viewer) -> Iterator[Concern]:
    """In one query."""
    count = viewer.narrow(retention.due()).count()
    if count:
        subject = ngettext("%d run is kept for too long", "%d runs are kept for too long", count)
        text = _(
            "These runs, or their raw blocks, which take most of the space, are older than the settings allow."
        )
        yield Concern(
            subject % count,
            text,
            _("Delete what is too old, daily by cron:"),
            "python manage.py pgperf prune",
        )


def _kept_for_ever(viewer: Viewer) -> Iterator[Concern]:
    """In one query, or none where `prune` has something to do or will have it."""
    size = retention.raw_bytes() if viewer.sees(Run) and retention.keeps_for_ever() else None
    if size and size >= MUCH_BYTES:
        yield Concern(
            _("Raw blocks take %s, and nothing deletes them") % filesizeformat(size),
            _("The settings KEEP_RAW_DAYS and KEEP_RUNS_DAYS keep everything for ever."),
            _("Set KEEP_RAW_DAYS to a number of days, and run this command daily by cron:"),
            "python manage.py pgperf prune",
        )


def _first_line(error: str) -> str:
    return Truncator(error.strip().partition("\n")[0]).chars(_MOST_TEXT)
