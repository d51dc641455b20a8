"""Hostile URLs: query strings of lists, and invalid IDs."""

import pytest
from django.db import transaction
from django.test import Client
from django.urls import reverse
from hypothesis import strategies as st

from pgperf.models import Benchmark
from tests.fuzz.browser import ANSWERS
from tests.fuzz.cases import fuzzed
from tests.fuzz.hostile import path_segments, query_strings

MODELS = ("run", "benchmark", "database", "workload", "worker")
NAMES = (
    "o", "p", "q", "all", "_facets", "status__exact", "status", "quick__exact", "benchmark_name", "database_name",
    "requested_at__gte", "requested_at__year", "requested_at__month", "requested_at__day", "requested_by__password",
    "database__id__exact", "workload__id__exact", "workload__sql__startswith", "placement__exact", "production__exact",
    "queue", "fixture", "id__in", "pk", "targets__host__contains", "_changelist_filters", "database", "length",
)  # fmt: skip


def get(site: Client, address: str) -> None:
    """Each URL runs in its own transaction, because a failed query would abort the test's."""
    with transaction.atomic():
        assert site.get(address).status_code in ANSWERS


@pytest.mark.parametrize("model", MODELS)
@fuzzed("queries", 2, query=query_strings(NAMES))
def test_a_list_answers_every_query_string(site: Client, model: str, query: str) -> None:
    get(site, reverse(f"admin:pgperf_{model}_changelist") + "?" + query)


@pytest.mark.parametrize("model", MODELS)
@fuzzed(
    "queries", 0.5, page=st.integers(-(10**6), 10**30), size=st.sampled_from(["", "&all=", "&_facets=True"])
)
def test_a_list_answers_every_page(site: Client, model: str, page: int, size: str) -> None:
    get(site, reverse(f"admin:pgperf_{model}_changelist") + f"?p={page}{size}")


PLACES = (
    "{}/change/", "{}/delete/", "{}/history/", "{}/", "{}/run/", "{}/progress/", "{}/cancel/", "{}/download/x.csv",
    "1/download/{}", "{}", "add/{}", "export/{}", "import/{}", "compare/{}",
)  # fmt: skip


@pytest.mark.parametrize("model", MODELS)
@fuzzed("queries", 1, place=st.sampled_from(PLACES), piece=path_segments(), query=query_strings(NAMES))
def test_an_invalid_address_gives_404(site: Client, model: str, place: str, piece: str, query: str) -> None:
    get(site, reverse(f"admin:pgperf_{model}_changelist") + place.format(piece) + "?" + query)


@fuzzed("queries", 1, query=query_strings((*NAMES, "database", "length")))
def test_the_start_page_answers_every_query_string(site: Client, query: str) -> None:
    get(
        site,
        reverse("admin:pgperf_benchmark_run", args=[Benchmark.objects.get(name="orm-overhead").pk])
        + "?"
        + query,
    )
