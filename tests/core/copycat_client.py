"""The one file of a new layer: a client program, here with the fake client's work."""

from pgperf.clients.loop import main
from pgperf.clients.programs.fake_client import FakeClient

if __name__ == "__main__":
    main(FakeClient)
