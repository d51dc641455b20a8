"""How the clients of a variant are dealt out to load hosts."""

from hypothesis import given
from hypothesis import strategies as st

from pgperf.core.host_part import WHOLE, HostPart

clients = st.integers(1, 200)


@given(clients, st.integers(1, 64))
def test_every_client_is_on_one_host(count: int, hosts: int) -> None:
    dealt = [index for at in range(hosts) for index in HostPart(at, hosts).indices(count)]
    assert sorted(dealt) == list(range(count))


@given(clients, clients, st.integers(1, 64))
def test_the_first_clients_of_a_larger_group_are_those_of_a_smaller_one(
    one: int, other: int, hosts: int
) -> None:
    few, many = sorted((one, other))
    for at in range(hosts):
        part = HostPart(at, hosts)
        assert list(part.indices(many))[: len(part.indices(few))] == list(part.indices(few))


@given(clients, st.integers(1, 64))
def test_no_host_has_two_clients_more_than_another(count: int, hosts: int) -> None:
    sizes = [len(HostPart(at, hosts).indices(count)) for at in range(hosts)]
    assert max(sizes) - min(sizes) <= 1


def test_without_load_hosts_all_clients_are_here() -> None:
    assert list(WHOLE.indices(5)) == [0, 1, 2, 3, 4]
