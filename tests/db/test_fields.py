"""Links to users and groups, where both sides are in one database; tests/installation has them
apart.
"""

import pytest
from django.contrib.auth.models import Group, User

from pgperf.db.fields import group_ids, set_groups
from pgperf.models import Run
from tests.factories import make_database, make_run

pytestmark = pytest.mark.django_db


def groups(*names: str) -> list[int]:
    return [Group.objects.create(name=name).pk for name in names]


def test_a_row_has_the_groups_it_was_given() -> None:
    database, (a, b, c) = make_database(), groups("a", "b", "c")
    set_groups(database, [b, a])
    assert group_ids(database) == [a, b]
    set_groups(database, [b, c])
    assert group_ids(database) == [b, c]
    assert list(database.groups.values_list("pk", flat=True)) == [b, c], "Django sees the same"


def test_a_group_that_goes_leaves_the_row() -> None:
    database, ids = make_database(), groups("a", "b")
    set_groups(database, ids)
    Group.objects.get(name="a").delete()
    assert group_ids(database) == ids[1:]


def test_a_row_that_goes_leaves_the_group() -> None:
    database, ids = make_database(), groups("a")
    set_groups(database, ids)
    database.delete()
    assert Group.objects.filter(pk__in=ids).exists()


@pytest.mark.parametrize("many", [False, True])
def test_a_user_who_goes_is_forgotten(many: bool) -> None:
    run = make_run(requested_by=User.objects.create_user("clerk"))
    User.objects.filter(username="clerk").delete() if many else User.objects.get(username="clerk").delete()
    run.refresh_from_db()
    assert run.requested_by is None
    assert Run.objects.count() == 1
