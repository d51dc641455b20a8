"""The second axis of the verdict matrix: its designs and its columns."""

from argparse import ArgumentTypeError

import pytest

from benchmarks.verdict_cells import (
    COLUMNS,
    DESIGNS,
    QUOTA,
    RIVALS,
    RIVALS_ELSEWHERE,
    RIVALS_ON_OWN,
    STOLEN,
    chosen,
)
from benchmarks.verdict_truth import word_of_disturbance


def test_columns_are_chosen_by_name() -> None:
    assert chosen("all") == COLUMNS
    assert chosen("quiet,quota") == ("quiet", "quota")
    with pytest.raises(ArgumentTypeError, match="no such column: loud"):
        chosen("quiet,loud")


def test_each_design_has_a_word_for_each_disturbance() -> None:
    for design in DESIGNS.values():
        assert tuple(design.words) == COLUMNS[1:]
        assert design.rival_on in ("clients", "server")
        assert design.throttled in ("client", "server")
        assert 0.001 <= design.quota < 1


#: Whose CPU a bottleneck sits on. The distance is on none: its own columns take the server's.
SIDES = {"client_cpu": "clients", "pool_queue": "clients", "server_cpu": "server", "server_lock": "server",
         "latency": "server"}  # fmt: skip


@pytest.mark.parametrize("case", DESIGNS)
def test_a_rival_is_elsewhere_or_on_the_bottlenecks_own_cpu(case: str) -> None:
    design = DESIGNS[case]
    own = SIDES[design.words["rival-own-full"]]
    assert {design.rival_side(column) for column in RIVALS_ON_OWN} == {own}
    assert {design.rival_side(column) for column in RIVALS_ELSEWHERE} == {"clients", "server"} - {own}


def test_a_rival_works_half_or_all_of_its_cpu() -> None:
    assert [*RIVALS_ELSEWHERE.values()] == [*RIVALS_ON_OWN.values()] == [0.5, 1.0]
    assert [column for column in COLUMNS if column in RIVALS] == [*RIVALS_ELSEWHERE, *RIVALS_ON_OWN]


def test_a_quota_names_its_role_and_no_other_disturbance_changes_the_word() -> None:
    for case, design in DESIGNS.items():
        assert design.words[QUOTA] == word_of_disturbance(case, QUOTA) == f"{design.throttled}_cpu"
        assert len({design.words[column] for column in (*RIVALS, *STOLEN)}) == 1
