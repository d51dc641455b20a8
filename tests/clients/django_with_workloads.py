"""The Django client as it ships, with the tests' workloads registered too."""

from importlib import import_module

from pgperf.clients.loop import main
from pgperf.clients.programs.django_client import DjangoClient
from pgperf.core import protocol


class Client(DjangoClient):
    def load(self, spec: protocol.Spec) -> None:
        super().load(spec)
        import_module("tests.clients.workloads")


if __name__ == "__main__":
    main(Client)
