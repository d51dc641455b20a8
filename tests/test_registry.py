"""The registry of ORM callables."""

import pytest

from pgperf import registry
from pgperf.core.exceptions import InvalidDefinition


@pytest.fixture(autouse=True)
def _empty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "WORKLOADS", {})


def test_a_callable_is_found_by_its_name_and_stays_what_it_was() -> None:
    def orders(customer: int) -> list[int]:
        return [customer]

    assert registry.workload("shop.orders")(orders) is orders
    assert registry.get("shop.orders")(7) == [7]
    assert registry.names() == ["shop.orders"]


def test_an_unknown_name_lists_the_known_ones() -> None:
    registry.workload("shop.orders")(len)
    registry.workload("shop.customers")(max)
    with pytest.raises(
        InvalidDefinition, match=r"'shop\.order' is registered; registered are: shop\.customers, shop\.orders"
    ):
        registry.get("shop.order")


def test_an_empty_registry_says_none() -> None:
    with pytest.raises(InvalidDefinition, match="registered are: none"):
        registry.get("")


def test_a_name_is_taken_once() -> None:
    registry.workload("shop.orders")(len)
    with pytest.raises(InvalidDefinition, match=r"already registered by builtins\.len; rename one"):
        registry.workload("shop.orders")(max)
    assert registry.get("shop.orders") is len


def test_loading_a_module_again_replaces_its_callables() -> None:
    def load() -> object:
        @registry.workload("shop.orders")
        def orders() -> None: ...

        return orders

    load()
    again = load()
    assert registry.get("shop.orders") is again


@pytest.mark.parametrize(
    "name", ["", "orders", "Shop.orders", "shop orders", "shop.", ".orders", "shop.1st", None, len]
)
def test_odd_names_are_refused_with_the_form_to_use(name: str) -> None:
    with pytest.raises(InvalidDefinition, match=r"write it app\.name"):
        registry.workload(name)


def test_a_name_has_a_form_for_threads_and_one_for_event_loops() -> None:
    @registry.workload("shop.orders")
    def orders() -> int:
        """All orders."""
        return 1

    with pytest.raises(InvalidDefinition, match="register an async def"):
        registry.get_async("shop.orders")

    @registry.workload("shop.orders")
    async def aorders() -> int:
        return 2

    assert registry.get("shop.orders") is orders
    assert registry.get_async("shop.orders") is aorders
    assert registry.title("shop.orders") == "All orders."


def test_an_async_function_alone_is_no_callable_for_threads() -> None:
    @registry.workload("shop.orders")
    async def aorders() -> int:
        """All orders."""
        return 2

    with pytest.raises(InvalidDefinition, match="register one without async"):
        registry.get("shop.orders")
    assert registry.title("shop.orders") == "All orders."


def test_a_second_async_function_of_a_name_is_refused() -> None:
    @registry.workload("shop.orders")
    async def one() -> int:
        return 1

    with pytest.raises(InvalidDefinition, match="already registered"):

        @registry.workload("shop.orders")
        async def other() -> int:
            return 2


def forms_of(first: str | None, second: str | None, asynchronous_first: bool) -> None:
    """Register both forms of shop.orders, each with its alias if it has one."""

    def orders() -> int:
        return 1

    async def aorders() -> int:
        return 2

    forms = (aorders, orders) if asynchronous_first else (orders, aorders)
    for form, alias in zip(forms, (first, second), strict=True):
        words = {} if alias is None else {"using": alias}
        registry.workload("shop.orders", **words)(form)


@pytest.mark.parametrize("asynchronous_first", [False, True], ids=["sync first", "async first"])
@pytest.mark.parametrize(
    ("first", "second", "alias"),
    [
        (None, None, "default"),
        ("replica", None, "replica"),
        (None, "replica", "replica"),
        ("replica", "replica", "replica"),
        ("default", None, "default"),
    ],
)
def test_both_forms_have_the_alias_that_one_names(
    first: str | None, second: str | None, alias: str, asynchronous_first: bool
) -> None:
    forms_of(first, second, asynchronous_first)
    assert registry.find("shop.orders").using == alias


@pytest.mark.parametrize("asynchronous_first", [False, True], ids=["sync first", "async first"])
@pytest.mark.parametrize(
    ("first", "second"), [("replica", "other"), ("replica", "default"), ("default", "other")]
)
def test_forms_that_name_two_aliases_are_refused(first: str, second: str, asynchronous_first: bool) -> None:
    with pytest.raises(
        InvalidDefinition,
        match=f"^workload 'shop.orders': using='{second}', but its other form has using='{first}'; name one",
    ):
        forms_of(first, second, asynchronous_first)
    assert registry.find("shop.orders").using == first


def test_a_module_that_is_loaded_again_may_name_another_alias() -> None:
    def load(alias: str) -> None:
        @registry.workload("shop.orders", using=alias)
        def orders() -> None: ...

    load("replica")
    load("other")
    assert registry.find("shop.orders").using == "other"
