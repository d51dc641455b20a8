import pytest

from pgperf.core.delayed_routes import MOST_MS, apart, is_written_well, lengthened


@pytest.mark.parametrize(
    ("route", "ms", "name"),
    [("tcp", 0.5, "tcp+0.5ms"), ("tcp", 45, "tcp+45ms"), ("tcp+0.5ms", 0.25, "tcp+0.75ms")],
)
def test_delayed_routes_have_names_with_the_delay(route: str, ms: float, name: str) -> None:
    assert lengthened(route, ms) == name
    assert apart(name)[0] == "tcp"
    assert apart(name)[1] == pytest.approx(apart(route)[1] + ms)


@pytest.mark.parametrize("name", ["tcp", "pgbouncer_transaction", "distance_05ms", "", "+1ms", "tcp+ms"])
def test_other_names_have_no_delay(name: str) -> None:
    assert apart(name) == (name, 0.0)


@pytest.mark.parametrize("name", ["tcp", "tcp+45ms", "tcp+0.5ms", f"tcp+{MOST_MS:g}ms"])
def test_a_name_has_one_delay_in_one_form(name: str) -> None:
    assert is_written_well(name)


@pytest.mark.parametrize(
    "name",
    ["tcp+0ms", "tcp+45.0ms", "tcp+045ms", "tcp+1ms+1ms", "tcp+10001ms", "tcp+ms", "tcp+1s", "tcp+0.0001ms"],
)
def test_another_form_is_refused(name: str) -> None:
    assert not is_written_well(name)
