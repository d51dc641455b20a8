"""The choice of a benchmark's workloads, in order."""

import re
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.urls import reverse

from pgperf.admin.ordered_rows import OrderedRowsField, OrderedSelects
from pgperf.models import Benchmark, Workload
from tests import factories
from tests.admin.form_data import form_data

pytestmark = pytest.mark.django_db


@pytest.fixture
def others() -> list[Workload]:
    return [Workload.objects.create(name=f"w{at:02}", title=f"W {at}", sql="SELECT 1") for at in range(13)]


@pytest.fixture
def save(admin_client: Any) -> Any:
    """Saves the benchmark with these workloads; returns the answer's text."""
    benchmark = factories.make_benchmark()
    page = reverse("admin:pgperf_benchmark_change", args=[benchmark.pk])

    def saved(*workloads: Any) -> str:
        data = {**form_data(admin_client.get(page)), "workloads": list(workloads)}
        return str(admin_client.post(page, data, follow=True).content.decode())

    return saved


def chosen() -> list[str]:
    return [row.name for row in Benchmark.objects.get(name="orm-overhead").workloads]


def test_the_order_of_the_form_is_kept_and_empty_choices_are_left_out(save: Any, others: Any) -> None:
    first, second, third, *_rest = others
    for order in ([third, first, second], [second, third, first], [first], others[:12]):
        keys = [key for row in order for key in (row.pk, "")]
        assert "was changed successfully" in save(*keys)
        assert chosen() == [row.name for row in order]


@pytest.mark.parametrize(
    ("places", "why"),
    [
        ([], "This field is required"),
        ([0, 1, 0], "Choose each row once"),
        ([*range(13)], "Choose at most 12"),
    ],
)
def test_a_wrong_choice_is_refused(save: Any, others: Any, places: list[int], why: str) -> None:
    before = chosen()
    assert why in save(*(others[at].pk for at in places))
    assert chosen() == before


def test_an_unknown_row_is_refused(save: Any) -> None:
    for key in ("0", "x", "-1", "9" * 30):
        assert "not " in save(key)
    assert chosen() == ["site-by-domain"]


def test_the_page_has_a_select_for_each_choice_and_two_more(admin_client: Any, others: Any) -> None:
    benchmark = factories.make_benchmark()
    page = reverse("admin:pgperf_benchmark_change", args=[benchmark.pk])
    for count, shown in ((1, 3), (5, 7), (11, 12), (12, 12)):
        benchmark.set_workloads(others[:count])
        text = admin_client.get(page).content.decode()
        assert len(re.findall(r'<select name="workloads"', text)) == shown
        assert len(set(re.findall(r'id="(id_workloads\w*)"', text))) >= shown


def test_an_address_names_a_workload_by_its_whole_number(admin_client: Any, others: Any) -> None:
    page = admin_client.get(reverse("admin:pgperf_benchmark_add"), {"workloads": others[12].pk})
    text = page.content.decode()
    assert text.count(f'<option value="{others[12].pk}" selected>') == 1
    assert text.count('<select name="workloads"') == 3


@pytest.mark.parametrize("value", ["1" * 4000, ["1"] * 900, range(900)])
def test_no_request_makes_more_selects_than_twice_the_most(value: Any) -> None:
    widget = OrderedSelects(choices=[("1", "one")])
    widget.most = 12
    assert widget.render("workloads", value).count("<select") <= 24


def test_too_many_rows_are_refused_without_a_query(others: Any, django_assert_num_queries: Any) -> None:
    field = OrderedRowsField(Workload.objects.all(), most=12)
    with django_assert_num_queries(0), pytest.raises(ValidationError, match="at most 12"):
        field.clean([str(others[0].pk)] * 900)
