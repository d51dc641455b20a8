"""The second axis of the verdict matrix: its designs and its columns."""

from argparse import ArgumentTypeError

import pytest

from benchmarks.verdict_cells import COLUMNS, DESIGNS, QUOTA, RIVALS, STOLEN, chosen
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


def test_a_rival_is_not_on_the_cpu_of_the_bottleneck() -> None:
    of_bottleneck = {"client_cpu": "clients", "pool_queue": "clients", "server_cpu": "server",
                     "server_lock": "server", "latency": ""}  # fmt: skip
    for design in DESIGNS.values():
        assert all(of_bottleneck[design.words[column]] != design.rival_on for column in RIVALS)


def test_a_quota_names_its_role_and_no_other_disturbance_changes_the_word() -> None:
    for case, design in DESIGNS.items():
        assert design.words[QUOTA] == word_of_disturbance(case, QUOTA) == f"{design.throttled}_cpu"
        assert len({design.words[column] for column in (*RIVALS, *STOLEN)}) == 1
