"""The client of django_orm_async as it ships, with the tests' workloads registered too."""

from importlib import import_module

from pgperf.clients.loop import main
from pgperf.clients.programs.django_async_client import DjangoAsyncClient
from pgperf.core import protocol


class Client(DjangoAsyncClient):
    def load(self, spec: protocol.Spec) -> None:
        super().load(spec)
        import_module("tests.clients.workloads")


if __name__ == "__main__":
    main(Client)
