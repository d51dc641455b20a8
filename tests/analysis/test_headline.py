"""Which variants the headline figure of a run is of, and the figure itself."""

import pytest

from pgperf.analysis.headline import figure, headline
from pgperf.core.records import Variant


def variant(layer: str, workload: str = "books", route: str = "socket", clients: int = 1) -> Variant:
    return Variant(
        workload=workload, layer=layer, mode="simple", route=route, clients=clients, connect="persistent",
        placement="apart", named=workload != "books",
    )  # fmt: skip


def test_it_is_of_the_topmost_layer_at_the_most_clients_over_the_first_route() -> None:
    top = variant("django_orm", clients=8)
    others = [
        variant("libpq", clients=8),
        variant("django_orm"),
        variant("django_orm", route="tcp", clients=8),
    ]
    assert headline([others[0], top, *others[1:]]) == [top]


@pytest.mark.parametrize("workloads", [2, 3])
def test_the_workloads_of_a_suite_share_it(workloads: int) -> None:
    names = [f"work-{at}" for at in range(workloads)]
    found = headline([variant(layer, name) for name in names for layer in ("libpq", "psycopg")])
    assert [each.workload for each in found] == (names if workloads > 2 else names[-1:])
    assert {each.layer for each in found} == {"psycopg"}


@pytest.mark.parametrize(
    ("times", "us"),
    [([80.0], 80.0), ([None], None), ([20.0, 80.0], 40.0), ([20.0, None], None), ([0.0, 80.0], None)],
)
def test_the_figure_is_the_time_or_the_geometric_mean(times: list[float | None], us: float | None) -> None:
    assert figure(times) == (us if us is None else pytest.approx(us))
