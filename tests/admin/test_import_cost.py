"""The admin answers a costly import within the bar of time and memory, with a short page."""

from functools import partial

import pytest
from django.contrib.auth.models import Group
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from pgperf.models import Workload
from tests import factories
from tests.fuzz.cost import cost_of
from tests.transfer.bulky import FILES

pytestmark = pytest.mark.django_db

#: Those that reach the rows; `tests/transfer/test_cost.py` has the other files, the campaign all.
CASES = [
    *[("benchmark", "json", name) for name in (
        "new benchmarks", "wrong cells", "other columns in each row", "repeated groups in each row",
        "a huge choice", "a huge name", "a huge text", "a huge column name", "empty lists in a cell",
    )],
    *[("database", "json", name) for name in (
        "new databases", "too many databases", "too many targets", "repeated targets",
    )],
    *[("workload", "json", name) for name in ("new workloads", "SQL of '('", "SQL of '%s'", "repeated groups")],
    *[("workload", "csv", name) for name in ("lists in cells", "deep lists in cells", "duplicate keys in cells")],
]  # fmt: skip
#: The page without problems has 14 kB; it shows up to 100 problems or changes.
MAX_PAGE_BYTES = 80_000


@pytest.fixture
def site() -> None:
    Group.objects.create(name="staff")
    Workload.objects.create(name="site", title="Site", sql="SELECT 1")
    factories.make_database()


@pytest.mark.parametrize(("model", "kind", "name"), CASES)
def test_a_costly_import_is_answered_within_the_bar(
    site: None, admin_page: Client, model: str, kind: str, name: str
) -> None:
    made = FILES[kind][name]()
    content = made if isinstance(made, bytes) else made.encode()
    page = reverse(f"admin:pgperf_{model}_import")
    admin_page.get(page)  # the first request loads the template
    cost_of(partial(answer_shortly, admin_page, page, f"x.{kind}", content)).check()


def answer_shortly(client: Client, page: str, name: str, content: bytes) -> None:
    answer = client.post(page, {"import_file": SimpleUploadedFile(name, content), "check": "1"})
    assert answer.status_code == 200
    assert len(answer.content) < MAX_PAGE_BYTES
