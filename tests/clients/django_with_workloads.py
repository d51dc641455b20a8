"""The Django client as it ships, with the tests' workloads registered too."""

from importlib import import_module

from pgperf import wire
from pgperf.clients.django_client import DjangoClient
from pgperf.clients.loop import main


class Client(DjangoClient):
    def load(self, spec: wire.Spec) -> None:
        super().load(spec)
        import_module("tests.clients.workloads")


if __name__ == "__main__":
    main(Client)
