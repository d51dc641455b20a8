"""Runs of a benchmark named `broken` raise an exception that contains the password."""

from typing import Any

from django.apps import AppConfig


class FailingConfig(AppConfig):
    name = "tests.security.failing"

    def ready(self) -> None:
        from pgperf.worker import execution  # only now are there models

        execution.execute = failing(execution.execute)


def failing(execute: Any) -> Any:
    """For that benchmark, raise an exception whose message and cause contain the password in each
    encoding.
    """

    def run(plan: Any, routes: Any, *args: Any) -> Any:
        if plan.definition.benchmark != "broken":
            return execute(plan, routes, *args)
        route = next(iter(routes.values()))
        try:
            raise KeyError(route.password)
        except KeyError as error:
            raise RuntimeError(f"no such password={route.password} {route.password!r} {route}") from error

    return run
