"""What groups hide stays hidden, whatever is deleted or emptied, in any order."""

import json
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import Group, Permission, User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection, transaction
from django.db.models import Model, ProtectedError, Q, QuerySet
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from pgperf.access import permissions
from pgperf.access.permissions import SCOPED
from pgperf.admin.consequences import of_deletion
from pgperf.db.fields import group_ids, set_groups
from pgperf.models import Benchmark, Database, Run, Schedule, Workload
from pgperf.runs import clone, confirmation, state
from pgperf.runs.definitions import freeze
from pgperf.worker import execution
from tests import factories
from tests.admin.form_data import form_data
from tests.kept_rows import undone
from tests.runner.builders import definition

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("one_heartbeat")]

SECRET = "hushed"
KINDS = ("database", "workload", "benchmark")
#: The rows that are given the group.
GIVEN = (("database",), ("benchmark",), ("workload",), KINDS)
GONE = ("group", "benchmark", "database", "workload", "requester")
#: The models beside pgperf's own on which it depends who sees what.
LOGINS = (Group, User, User.groups.through)


@dataclass
class Site:
    """One row of each kind, and users with all permissions: in the group, in none, a superuser."""

    group: Group
    database: Database
    workload: Workload
    benchmark: Benchmark
    run: Run
    requester: User
    member: User
    stranger: User
    superuser: User

    def rows(self) -> list[Any]:
        """Those that are still there, as they are now."""
        return [row for kind in SCOPED for row in kind._default_manager.filter(ours(kind))]

    def give(self, *kinds: str) -> None:
        for kind in kinds:
            getattr(self, kind).groups.add(self.group)

    def seen_by(self, user: User) -> set[tuple[str, int]]:
        found = (permissions.visible(kind._default_manager.filter(ours(kind)), user) for kind in SCOPED)
        return {(type(row).__name__, row.pk) for rows in found for row in rows}


def ours(kind: type[Model]) -> Q:
    name = {Run: "benchmark_name", Schedule: "benchmark__name"}.get(kind, "name")
    return Q(**{f"{name}__startswith": SECRET})


@pytest.fixture
def site() -> Site:
    group = Group.objects.create(name="insiders")
    member, requester = (user(name, group) for name in ("member", "requester"))
    workload = Workload.objects.create(name=f"{SECRET}-workload", title="w", sql="SELECT 1")
    database = factories.make_database(f"{SECRET}-database")
    benchmark = factories.make_benchmark(
        f"{SECRET}-benchmark", workloads=[workload], database=database, title=f"{SECRET} title"
    )
    run = factories.make_run(
        benchmark=benchmark,
        database=database,
        requested_by=requester,
        definition=freeze(benchmark, database).to_json(),
    )
    factories.make_schedule(benchmark=benchmark, database=database, owner=requester)
    boss = User.objects.create_superuser("boss")
    return Site(group, database, workload, benchmark, run, requester, member, user("stranger"), boss)


def user(name: str, *groups: Group) -> User:
    made = User.objects.create_user(name, is_staff=True)
    made.user_permissions.set(Permission.objects.filter(content_type__app_label__in=["pgperf", "auth"]))
    made.groups.set(groups)
    return made


def client(user: User) -> Client:
    found = Client()
    found.force_login(user)
    return found


def delete(row: Model) -> bool:
    """False where a benchmark still protects a workload."""
    try:
        with transaction.atomic():
            row.delete()
    except ProtectedError:
        return False
    return True


def stored() -> tuple[Any, ...]:
    """Every row of pgperf, every user, group and membership as text, without the numbers of links,
    which a deletion may make anew.
    """
    found = []
    for model in (*apps.get_app_config("pgperf").get_models(include_auto_created=True), *LOGINS):
        fields = [
            field for field in model._meta.concrete_fields if not (is_link(model) and field.primary_key)
        ]
        columns = ", ".join(f'"{field.column}"' for field in fields)
        found.append(f"SELECT '{model._meta.db_table}', ROW({columns})::text FROM {model._meta.db_table}")
    with connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join(found) + " ORDER BY 1, 2")
        return tuple(cursor.fetchall())


def is_link(model: type[Model]) -> bool:
    return bool(model._meta.auto_created)


@pytest.mark.parametrize("given", GIVEN, ids="+".join)
def test_no_order_of_deletions_opens_a_row(given: tuple[str, ...], site: Site) -> None:
    """Every order of a group, a benchmark, a database, a workload and the user who asked."""
    site.give(*given)
    hidden = site.seen_by(site.superuser) - site.seen_by(site.stranger)
    assert len(hidden) >= 2
    deletions = Deletions(site, hidden, site.seen_by(site.member))
    assert deletions.orders() == 60, "a benchmark before its workload"


@dataclass
class Deletions:
    """The rows of GONE, deleted in every order that is possible.

    Orders that begin alike share their first deletions. Orders that left the same in every table
    share the rest: pages, and what a deletion does, depend on the tables alone.
    """

    site: Site
    hidden: set[tuple[str, int]]
    member: set[tuple[str, int]]
    known: dict[tuple[Any, ...], int] = field(default_factory=dict)

    def orders(self, gone: tuple[str, ...] = ()) -> int:
        """Delete the rows that are not gone; returns in how many orders."""
        state = stored()
        if state not in self.known:
            self.check(gone)
            left = [name for name in GONE if name not in gone]
            self.known[state] = sum(self.orders_from(gone, name) for name in left) if left else 1
        return self.known[state]

    def orders_from(self, gone: tuple[str, ...], name: str) -> int:
        with undone():
            row = getattr(self.site, name)
            return self.orders((*gone, name)) if delete(type(row).objects.get(pk=row.pk)) else 0

    def check(self, gone: tuple[str, ...]) -> None:
        assert self.site.seen_by(self.site.stranger).isdisjoint(self.hidden), gone
        if len(gone) == len(GONE):
            assert self.site.seen_by(self.site.member) <= self.member, gone
            assert len(self.site.seen_by(self.site.superuser)) == len(self.site.rows()) == 1, "the run stays"


#: After its deletion there are pages left to look at.
DELETED = ("group", "benchmark", "database", "requester")


@pytest.mark.parametrize("given", GIVEN, ids="+".join)
def test_pages_files_and_json_show_nothing_after_a_deletion(given: tuple[str, ...], site: Site) -> None:
    site.give(*given)
    factories.make_results(site.run)
    seen = site.seen_by(site.stranger)
    hidden = {str(row): row for row in site.rows() if (type(row).__name__, row.pk) not in seen}
    shown = {}
    for name in DELETED:
        with undone():
            shown[name] = after_deletion(name, deepcopy(site), hidden)
    assert not any(shown.values()), shown


def after_deletion(name: str, site: Site, hidden: Mapping[str, Any]) -> list[str]:
    """What was hidden, is still there, and is shown to the stranger."""
    getattr(site, name).delete()
    text = everything(client(site.stranger), site)
    there = [shown for shown, row in hidden.items() if type(row)._default_manager.filter(pk=row.pk).exists()]
    assert there
    return [shown for shown in there if shown in text]


def test_pages_files_and_json_show_the_run_to_a_superuser_after_a_deletion(site: Site) -> None:
    """So the stranger does not see it there because it is hidden. Groups mean nothing here."""
    site.give(*KINDS)
    factories.make_results(site.run)
    for name in DELETED:
        with undone():
            left = deepcopy(site)
            getattr(left, name).delete()
            assert left.run.benchmark_name in everything(client(left.superuser), left), name


def everything(client: Client, site: Site) -> str:
    """Lists, pages, JSON and files, as one text."""
    found = [client.get(reverse(f"admin:pgperf_{kind}_changelist")) for kind in (*KINDS, "run", "schedule")]
    found += [client.get(reverse("admin:pgperf_benchmark_add"))]
    for kind in KINDS:
        form = {"format": "json", "chosen": ""}
        found.append(client.post(reverse(f"admin:pgperf_{kind}_export"), form))
    for row in (site.database, site.workload, site.benchmark, site.run):
        if row.pk:
            found.append(client.get(reverse(f"admin:pgperf_{row._meta.model_name}_change", args=[row.pk])))
    if site.run.pk:
        found.append(client.get(reverse("admin:pgperf_run_progress", args=[site.run.pk])))
        found.append(client.get(reverse("admin:pgperf_run_download", args=[site.run.pk, "variants.csv"])))
    return "".join(
        (b"".join(each.streaming_content) if each.streaming else each.content).decode() for each in found
    )


@pytest.mark.parametrize("name", ["group", "benchmark", "requester"])
def test_the_worker_refuses_a_user_who_sees_a_run_no_more(name: str, site: Site) -> None:
    site.database.targets.filter(route="tcp").update(route="here")
    frozen = definition(blocks=1).to_json()
    site.give("database", "benchmark")
    run = state.request(
        factories.make_benchmark(f"{SECRET}-benchmark", layers=["fake"], routes=["here"]),
        site.database,
        user=site.requester,
    )
    Run.objects.filter(pk=run.pk).update(definition=frozen, busy_key=None)
    assert permissions.refusal(run) == ""
    getattr(site, name).delete()
    run = execution.perform(run.pk, "w@h")
    assert run.status == Run.Status.FAILED
    assert run.error.startswith("permission: the user who asked for this run may not")


def by_form(row: Any, who: User) -> None:
    page = reverse(f"admin:pgperf_{row._meta.model_name}_change", args=[row.pk])
    data = {**form_data(client(who).get(page)), "groups": []}
    response = client(who).post(page, data)
    assert response.status_code == 302, response.context["adminform"].form.errors


def by_import(row: Any, who: User) -> None:
    upload = SimpleUploadedFile("x.json", json.dumps([{"name": row.name, "groups": []}]).encode())
    page = reverse(f"admin:pgperf_{row._meta.model_name}_import")
    assert client(who).post(page, {"import_file": upload}).status_code == 302


EMPTY: dict[str, Callable[[Any, User], Any]] = {
    "form": by_form,
    "import": by_import,
    "clear": lambda row, who: row.groups.clear(),
    "set": lambda row, who: row.groups.set([]),
    "remove": lambda row, who: row.groups.remove(*row.groups.all()),
    "set_groups": lambda row, who: set_groups(row, []),
    "links": lambda row, who: type(row).groups.through.objects.all().delete(),
}


@pytest.mark.parametrize("way", EMPTY)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("who", ["member", "superuser"])
def test_no_way_to_empty_the_groups_opens_a_row(who: str, kind: str, way: str, site: Site) -> None:
    if who == "superuser" and way not in ("form", "import"):
        pytest.skip("a shell asks for no user")
    site.give(kind)
    row = type(getattr(site, kind)).objects.get(pk=getattr(site, kind).pk)
    hidden = site.seen_by(site.superuser) - site.seen_by(site.stranger)
    EMPTY[way](row, getattr(site, who))
    assert group_ids(row) == []
    assert site.seen_by(site.stranger).isdisjoint(hidden)
    assert site.seen_by(site.member).isdisjoint(hidden)
    assert hidden <= site.seen_by(site.superuser)


@pytest.mark.parametrize("kind", KINDS)
def test_groups_that_were_linked_past_every_signal_hide_too(kind: str, site: Site) -> None:
    row = getattr(site, kind)
    through = type(row).groups.through
    through.objects.bulk_create([through(**{f"{kind}_id": row.pk, "group_id": site.group.pk})])
    hidden = site.seen_by(site.superuser) - site.seen_by(site.stranger)
    assert (type(row).__name__, row.pk) in hidden
    site.group.delete()
    assert site.seen_by(site.stranger).isdisjoint(hidden)


def test_each_question_is_asked_anew(site: Site) -> None:
    """One object of a user, over changes of the rows and of the groups."""
    assert site.seen_by(site.stranger) == site.seen_by(site.superuser)
    site.give("workload")
    hidden = site.seen_by(site.superuser) - site.seen_by(site.stranger)
    assert {name for name, _pk in hidden} == {"Workload", "Benchmark", "Schedule", "Run"}
    site.stranger.groups.add(site.group)
    assert site.seen_by(site.stranger) == site.seen_by(site.superuser)
    site.stranger.groups.clear()
    assert site.seen_by(site.stranger).isdisjoint(hidden)


@pytest.mark.parametrize("kind", SCOPED)
def test_a_kept_condition_stays_as_it_was_made(kind: type[Model], site: Site) -> None:
    """Whatever queries it was part of."""

    def asked() -> QuerySet[Model]:
        return permissions.visible(kind._default_manager.all(), site.member)

    site.give(*KINDS)
    for use in (asked().exclude(pk=0), asked() | asked(), asked().filter(pk__in=asked()), asked()[:1]):
        assert use.first()
    kept = str(asked().query)
    permissions._condition.cache_clear()
    assert kept == str(asked().query)


@pytest.mark.parametrize("way", ["form", "import"])
@pytest.mark.parametrize("kind", KINDS)
def test_only_a_superuser_opens_a_row(kind: str, way: str, site: Site) -> None:
    site.give(kind)
    row = getattr(site, kind)

    def untick(who: User, groups: list[str]) -> None:
        if way == "form":
            page = reverse(f"admin:pgperf_{kind}_change", args=[row.pk])
            keys = Group.objects.filter(name__in=groups).values_list("pk", flat=True)
            data = {**form_data(client(who).get(page)), "groups": list(keys)}
            data.pop("restricted", None)
            client(who).post(page, data)
        else:
            found = [{"name": row.name, "groups": groups, "restricted": False}]
            upload = SimpleUploadedFile("x.json", json.dumps(found).encode())
            client(who).post(reverse(f"admin:pgperf_{kind}_import"), {"import_file": upload})
        row.refresh_from_db()

    untick(site.superuser, ["insiders"])
    assert row.restricted, "groups and no restriction contradict each other"
    untick(site.member, [])
    assert row.restricted
    untick(site.superuser, [])
    assert not row.restricted
    assert permissions.may_see(site.stranger, row)


def test_runs_of_an_opened_row_wait_for_a_superuser(site: Site) -> None:
    site.give("database")
    run = state.request(factories.make_benchmark(), site.database, user=site.member)
    assert run.restricted
    assert permissions.may_see(site.member, run)
    page = reverse("admin:pgperf_database_change", args=[site.database.pk])
    boss = client(site.superuser)
    data = {**form_data(boss.get(page)), "groups": []}
    data.pop("restricted")
    assert "1 run of it stays restricted" in boss.post(page, data, follow=True).content.decode()
    assert not permissions.may_see(site.stranger, run)
    lift = {"action": "lift_restriction", "_selected_action": [run.pk]}
    address = reverse("admin:pgperf_run_changelist")
    client(site.member).post(address, lift)
    assert not permissions.may_see(site.stranger, run)
    boss.post(address, lift)
    assert permissions.may_see(site.stranger, run)


class TestCopies:
    def test_a_clone_is_restricted(self, site: Site) -> None:
        site.give("benchmark")
        Group.objects.all().delete()
        copy = clone.clone(Benchmark.objects.get(pk=site.benchmark.pk))
        assert not permissions.may_see(site.stranger, copy)

    @pytest.mark.parametrize("given", GIVEN, ids="+".join)
    def test_a_benchmark_made_from_a_run_is_restricted(self, given: tuple[str, ...], site: Site) -> None:
        site.give(*given)
        Workload.objects.filter(pk=site.workload.pk).update(sql="SELECT 2")
        made = clone.from_run(Run.objects.get(pk=site.run.pk), Workload.objects.all())
        Benchmark.objects.filter(pk=made.pk).update(database=None)
        for row in (made, *made.workloads):
            assert not permissions.may_see(site.stranger, row)
            assert permissions.may_see(site.member, row)

    def test_a_benchmark_made_from_a_run_without_its_database_is_for_superusers(self, site: Site) -> None:
        site.give("database")
        benchmark = factories.make_benchmark(f"{SECRET}-open")
        run = state.request(benchmark, site.database)
        site.database.delete()
        run = Run.objects.get(pk=run.pk)
        made = clone.from_run(run, Workload.objects.all())
        assert not permissions.may_see(site.member, made)

    @pytest.mark.parametrize("given", GIVEN, ids="+".join)
    def test_a_run_and_its_confirmation_are_restricted(self, given: tuple[str, ...], site: Site) -> None:
        site.give(*given)
        first = state.request(site.benchmark, site.database)
        origin = factories.make_results(site.run)
        origin.variants.update(workload=site.workload.name)
        assert first.restricted
        test_run = confirmation.request(
            origin.variants.get(label=factories.label_to_test(origin)), user=site.member
        )
        assert test_run.restricted
        assert permissions.may_see(site.member, test_run)
        site.benchmark.delete()
        assert not permissions.may_see(site.member, test_run)
        assert permissions.may_see(site.superuser, test_run)

    @pytest.mark.parametrize("kind", ["benchmark", "workload"])
    def test_save_as_new_keeps_the_restriction(self, kind: str, site: Site) -> None:
        site.give(kind)
        row = getattr(site, kind)
        page = reverse(f"admin:pgperf_{kind}_change", args=[row.pk])
        member = client(site.member)
        data = {**form_data(member.get(page)), "groups": [], "name": "copied", "_saveasnew": "1"}
        response = member.post(page, data, follow=True)
        assert "Only superusers see copied now" in response.content.decode()
        copy = type(row).objects.get(name="copied")
        assert copy.restricted
        assert not permissions.may_see(site.stranger, copy)

    @pytest.mark.parametrize("who", ["member", "superuser"])
    @pytest.mark.parametrize("kind", ["database", "workload"])
    def test_save_as_new_without_what_hid_the_original_is_restricted(
        self, kind: str, who: str, site: Site
    ) -> None:
        site.give(kind)
        page = reverse("admin:pgperf_benchmark_change", args=[site.benchmark.pk])
        browser = client(getattr(site, who))
        plain = factories.make_benchmark("plain").workloads[0].pk
        other = {"database": ""} if kind == "database" else {"workloads": [plain]}
        data = {**form_data(browser.get(page)), **other, "name": "copied", "_saveasnew": "1"}
        response = browser.post(page, data, follow=True)
        assert "Only superusers see copied now" in response.content.decode()
        assert not permissions.may_see(site.stranger, Benchmark.objects.get(name="copied"))

    def test_save_as_new_beside_what_hides_the_original_has_no_mark_of_its_own(self, site: Site) -> None:
        site.give("database")
        page = reverse("admin:pgperf_benchmark_change", args=[site.benchmark.pk])
        member = client(site.member)
        member.post(page, {**form_data(member.get(page)), "name": "copied", "_saveasnew": "1"})
        copy = Benchmark.objects.get(name="copied")
        assert not copy.restricted
        assert permissions.may_see(site.member, copy)
        assert not permissions.may_see(site.stranger, copy)

    @pytest.mark.parametrize("kind", KINDS)
    def test_an_old_form_does_not_open_what_was_restricted_meanwhile(self, kind: str, site: Site) -> None:
        row = getattr(site, kind)
        page = reverse(f"admin:pgperf_{kind}_change", args=[row.pk])
        superuser = client(site.superuser)
        before = form_data(superuser.get(page))
        type(row).objects.filter(pk=row.pk).update(restricted=True)
        assert (
            "Somebody restricted this after you opened the form"
            in superuser.post(page, before).content.decode()
        )
        assert type(row).objects.get(pk=row.pk).restricted
        again = {
            name: value for name, value in form_data(superuser.get(page)).items() if name != "restricted"
        }
        assert superuser.post(page, again).status_code == 302
        assert not type(row).objects.get(pk=row.pk).restricted


class TestWorkload:
    @pytest.fixture(autouse=True)
    def given(self, site: Site) -> None:
        site.give("workload")

    def test_it_hides_the_benchmarks_that_use_it(self, site: Site) -> None:
        pair = factories.make_benchmark(
            "pair", workloads=[*factories.make_benchmark().workloads, site.workload]
        )
        assert not permissions.may_see(site.stranger, pair)
        assert permissions.may_see(site.member, pair)

    @pytest.mark.parametrize("page", ["change", "delete", "history"])
    def test_strangers_reach_no_page_of_it(self, page: str, site: Site) -> None:
        address = reverse(f"admin:pgperf_workload_{page}", args=[site.workload.pk])
        for response in (
            client(site.stranger).get(address),
            client(site.stranger).post(address, {"post": "yes"}),
        ):
            assert response.status_code in (302, 404)
        assert Workload.objects.filter(pk=site.workload.pk, sql="SELECT 1").exists()

    def test_strangers_cannot_choose_it(self, site: Site) -> None:
        mine = factories.make_benchmark("mine")
        page = reverse("admin:pgperf_benchmark_change", args=[mine.pk])
        stranger = client(site.stranger)
        data = {**form_data(stranger.get(page)), "workloads": [mine.workloads[0].pk, site.workload.pk]}
        assert "valid choice" in stranger.post(page, data).content.decode()
        upload = SimpleUploadedFile(
            "x.json", json.dumps([{"name": "mine", "workloads": [site.workload.name]}]).encode()
        )
        answer = stranger.post(reverse("admin:pgperf_benchmark_import"), {"import_file": upload})
        assert "There is no workload" in answer.content.decode()
        assert site.workload not in mine.workloads

    def test_strangers_cannot_import_over_it(self, site: Site) -> None:
        found = [{"name": site.workload.name, "title": "taken over", "sql": "SELECT 666"}]
        upload = SimpleUploadedFile("x.json", json.dumps(found).encode())
        page = reverse("admin:pgperf_workload_import")
        answer = client(site.stranger).post(page, {"import_file": upload})
        assert "This name is not available" in answer.content.decode()
        site.workload.refresh_from_db()
        assert site.workload.sql == "SELECT 1"


@pytest.mark.parametrize("way", ["form", "shell"])
@pytest.mark.parametrize("kind", ["database", "workload"])
def test_a_benchmark_that_leaves_a_restricted_row_stays_hidden(kind: str, way: str, site: Site) -> None:
    site.give(kind)
    other = (
        factories.make_database("other") if kind == "database" else factories.make_benchmark().workloads[0]
    )
    chosen = {"database": other.pk} if kind == "database" else {"workloads": [other.pk]}
    if way == "form":
        page = reverse("admin:pgperf_benchmark_change", args=[site.benchmark.pk])
        member = client(site.member)
        text = member.post(page, {**form_data(member.get(page)), **chosen}, follow=True).content.decode()
        assert f"Only superusers see {SECRET}-benchmark now" in text
    elif kind == "workload":
        site.benchmark.set_workloads([other])
    else:
        site.benchmark.database = other
        site.benchmark.save()
    assert not permissions.may_see(site.stranger, Benchmark.objects.get(pk=site.benchmark.pk))
    assert not permissions.may_see(site.stranger, site.run)


def test_a_benchmark_takes_over_the_groups_of_a_deleted_database(site: Site) -> None:
    """Those of the database; where it has groups of its own, those that both have."""
    other = Group.objects.create(name="others")
    site.give("database")
    narrow = factories.make_benchmark("narrow", database=site.database)
    narrow.groups.set([site.group, other])
    alone = factories.make_benchmark("alone", database=site.database)
    alone.groups.set([other])
    site.database.delete()
    assert group_ids(site.benchmark) == group_ids(narrow) == [site.group.pk]
    assert group_ids(alone) == []
    alone.refresh_from_db()
    assert alone.restricted


def benchmarks_of(site: Site, count: int, first: int = 0) -> list[Benchmark]:
    """Of the site's database, each with a group of its own."""
    found = [
        factories.make_benchmark(f"more-{at}", database=site.database) for at in range(first, first + count)
    ]
    for at, benchmark in enumerate(found, first):
        benchmark.groups.set([Group.objects.create(name=f"group-{at}")])
    return found


class TestDeletePages:
    def test_a_restricted_database(self, site: Site) -> None:
        site.give("database")
        page = reverse("admin:pgperf_database_delete", args=[site.database.pk])
        text = client(site.member).get(page).content.decode()
        lost = f"Benchmarks that lose the default database {SECRET}-database."
        assert f"{lost} Then only superusers and members of insiders may see them:" in text
        assert f"Runs of {SECRET}-database that only superusers may see then:" in text
        assert f"<li>{site.run}</li>" in text

    def test_one_that_is_open(self, site: Site) -> None:
        site.give("benchmark")
        page = reverse("admin:pgperf_database_delete", args=[site.database.pk])
        text = client(site.stranger).get(page).content.decode()
        assert f"Benchmarks that lose the default database {SECRET}-database:" in text
        assert f"{SECRET}-benchmark" not in text
        assert str(site.run) not in text
        assert text.count("1 more") == 2

    def test_each_group_of_benchmarks_is_told_apart(self, site: Site) -> None:
        """By who may see them then: the groups that a benchmark shares with its database."""
        site.give("database")
        more = benchmarks_of(site, 3)
        more[0].groups.set([])
        Benchmark.objects.filter(pk=more[0].pk).update(restricted=False)
        Benchmark.objects.filter(pk=more[1].pk).update(restricted=True)
        more[1].groups.set([])
        more[2].groups.add(site.group)
        site.database.groups.add(*more[2].groups.all())
        found = {
            each.text.partition("Then ")[2]: each for each in of_deletion([site.database], site.superuser)
        }
        everyone = "only superusers and members of group-2, insiders may see them:"
        assert found[everyone].names == [str(site.benchmark), str(more[0]), str(more[2])]
        assert found["only superusers may see them:"].names == [str(more[1])]
        hidden = {each.text: each for each in of_deletion([site.database], site.stranger)}
        assert sum(each.more for text, each in hidden.items() if "default database" in text) == 4

    @pytest.mark.parametrize("given", [(), ("database",)])
    def test_runs_that_have_not_ended(self, given: tuple[str, ...], site: Site) -> None:
        site.give(*given)
        of_site = {"benchmark": site.benchmark, "database": site.database}
        queued, running = (factories.make_run(status, **of_site) for status in ("queued", "running"))
        found = {
            each.text.replace(f"{SECRET}-", ""): each.names
            for each in of_deletion([site.database], site.superuser)
        }
        assert found["Queued runs of database, which will fail:"] == [str(queued)]
        assert found["Runs of database under way, which go on:"] == [str(running)]
        if not given:
            assert found["Runs of database that stay as they are:"] == [str(site.run)]

    def test_a_benchmark_leaves_queued_runs_as_they_are(self, site: Site) -> None:
        factories.make_run("queued", benchmark=site.benchmark, database=site.database)
        assert [each.text for each in of_deletion([site.benchmark], site.superuser)] == [
            f"Runs of {SECRET}-benchmark that stay as they are:"
        ]

    @pytest.mark.parametrize("kind", [(), ("database",)])
    def test_as_many_queries_for_two_benchmarks_as_for_twenty(
        self, site: Site, kind: tuple[str, ...], django_assert_num_queries: Any
    ) -> None:
        site.give(*kind)
        page = reverse("admin:pgperf_database_delete", args=[site.database.pk])
        member = client(site.member)
        benchmarks_of(site, 1)
        member.get(page)
        with CaptureQueriesContext(connection) as few:
            member.get(page)
        benchmarks_of(site, 18, 1)
        with django_assert_num_queries(len(few)):
            member.get(page)
        assert Benchmark.objects.filter(database=site.database).count() == 20

    def test_several_at_once(self, site: Site) -> None:
        site.give("benchmark")
        data = {"action": "delete_selected", "_selected_action": [site.benchmark.pk]}
        text = client(site.member).post(reverse("admin:pgperf_benchmark_changelist"), data).content.decode()
        assert f"Runs of {SECRET}-benchmark that only superusers may see then:" in text
        assert Benchmark.objects.filter(pk=site.benchmark.pk).exists()

    def test_of_many_rows_the_first_ones_in_as_many_queries(
        self, site: Site, django_assert_num_queries: Any
    ) -> None:
        rows = benchmarks_of(site, 30)
        with CaptureQueriesContext(connection) as few:
            of_deletion(rows[:20], site.superuser)
        with django_assert_num_queries(len(few)):
            found = of_deletion(rows, site.superuser)
        assert found[-1].text == "10 more rows are deleted; what they leave behind is not listed here."
        data = {"action": "delete_selected", "_selected_action": [row.pk for row in rows[:21]]}
        page = reverse("admin:pgperf_benchmark_changelist")
        assert "1 more row is deleted;" in client(site.superuser).post(page, data).content.decode()

    def test_a_group_by_numbers_of_its_links_and_no_names(self, site: Site) -> None:
        site.give(*KINDS)
        page = reverse("admin:auth_group_delete", args=[site.group.pk])
        for who in (site.stranger, site.superuser):
            text = client(who).get(page).content.decode()
            for kind in KINDS:
                link = getattr(site, kind).groups.through.objects.get()
                assert f"{type(link).__name__} object ({link.pk})" in text
            assert SECRET not in text


def test_a_taken_name_is_refused_in_the_same_words_whoever_sees_it(site: Site) -> None:
    site.give(*KINDS)
    open_ones = {
        "database": factories.make_database("open"),
        "workload": Workload.objects.create(name="open", title="o", sql="SELECT 1"),
        "benchmark": factories.make_benchmark("open"),
    }
    stranger = client(site.stranger)
    for kind, mine in open_ones.items():
        page = reverse(f"admin:pgperf_{kind}_add")
        change = reverse(f"admin:pgperf_{kind}_change", args=[mine.pk])
        errors = [
            stranger.post(page, {**form_data(stranger.get(change)), "name": name})
            .context["adminform"]
            .form.errors["name"]
            for name in ("open", f"{SECRET}-{kind}")
        ]
        assert errors[0] == errors[1] == ["This name is not available. Choose another name."]
