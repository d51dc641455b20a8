"""A costly file is read or refused within the bar of time and memory, with a short message."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgperf.core.exceptions import TransferError
from pgperf.transfer import files, tree
from pgperf.transfer.table import MAX_DEPTH, MAX_VALUES, check_storable, clipped, first_duplicate
from tests.fuzz import cost
from tests.transfer.bulky import FILES, yaml_files

CASES = [(kind, name) for kind, made in FILES.items() for name in made]


def read(name: str, content: str | bytes) -> str:
    """Why the file is refused; "" if it is not."""
    raw = content if isinstance(content, bytes) else content.encode()
    reasons: list[str] = []
    cost.cost_of(lambda: reasons.append(read_once(name, raw))).check()
    return reasons[0]


def read_once(name: str, raw: bytes) -> str:
    try:
        files.read(name, raw)
    except TransferError as error:
        return str(error)
    return ""


def test_the_least_of_the_times_of_a_slow_action_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    costs = iter([cost.Cost(5.0, 1.0), cost.Cost(2.5, 7.0), cost.Cost(1.5, 2.0), cost.Cost(0.1, 0.0)])
    monkeypatch.setattr(cost, "_once", lambda action: next(costs))
    assert cost.cost_of(lambda: None) == cost.Cost(1.5, 7.0)
    slow = iter([cost.Cost(5.0)] * 4)
    monkeypatch.setattr(cost, "_once", lambda action: next(slow))
    assert cost.cost_of(lambda: None).is_slow


@pytest.mark.parametrize(("kind", "name"), CASES)
def test_a_costly_file_is_read_or_refused_within_the_bar(kind: str, name: str) -> None:
    assert len(read(f"x.{kind}", FILES[kind][name]())) < 500


@pytest.mark.parametrize(
    "name", ["a duplicate key in many", "a plain text of lines", "a long number in base 60"]
)
def test_pyyaml_without_its_c_library_holds_the_bar(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With files as long as its smaller limits allow, which are read."""
    monkeypatch.setattr(tree, "_base", lambda: tree.yaml.SafeLoader)
    made = yaml_files(tree.MAX_YAML_BYTES // 2, tree.MAX_YAML_EVENTS // 2)[name]()
    reason = read("x.yaml", made)
    assert len(reason) < 500
    assert "C library" not in reason


def test_pyyaml_without_its_c_library_reads_half_as_much(monkeypatch: pytest.MonkeyPatch) -> None:
    """The refusal names the limit."""
    long, many = "- name: a\n  title: " + "x" * 256 * 1024, "- {name: [" + "a," * 20_000 + "a]}"
    with monkeypatch.context() as with_library:
        with_library.setattr(tree, "_in_c", lambda: True)
        assert not any("C library" in read_once("x.yaml", made.encode()) for made in (long, many))
    monkeypatch.setattr(tree, "_base", lambda: tree.yaml.SafeLoader)
    assert read_once("x.yaml", long.encode()) == (
        "the YAML file is larger than 256 KiB, the limit where PyYAML lacks its C library: use JSON"
    )
    assert read_once("x.yaml", many.encode()) == (
        "invalid YAML: too many values, the limit where PyYAML lacks its C library: use JSON"
    )


def test_the_bar_of_time_follows_the_speed_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cost, "slowness", lambda: 1.5)
    cost.Cost(cpu_s=2.9).check()
    with pytest.raises(AssertionError, match=r"3.10 s of CPU time, of 3.00 s"):
        cost.Cost(cpu_s=3.1).check()


def test_the_bar_of_time_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cost, "REFERENCE_S", 1e-9)
    with pytest.raises(AssertionError, match=r"8.10 s of CPU time, of 8.00 s"):
        cost.Cost(cpu_s=8.1).check()


@given(st.lists(st.text("ab", max_size=3)))
def test_the_first_duplicate_is_found(items: list[str]) -> None:
    slow = next((item for at, item in enumerate(items) if item in items[:at]), None)
    assert first_duplicate(items) == slow


def nested(levels: int) -> list[object]:
    return [nested(levels - 1)] if levels > 1 else [1]


def test_a_value_has_limits() -> None:
    check_storable(nested(MAX_DEPTH))
    check_storable([1] * (MAX_VALUES - 1))
    with pytest.raises(ValueError, match="deeper"):
        check_storable(nested(MAX_DEPTH + 1))
    with pytest.raises(ValueError, match="values"):
        check_storable({"a": [{"b": [1] * MAX_VALUES}]})


def test_a_message_is_clipped() -> None:
    assert clipped("x" * 300) == "x" * 300
    assert len(clipped("x" * 10_000)) == 301
