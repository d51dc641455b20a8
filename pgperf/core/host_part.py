"""The part of a variant's clients that one load host has."""

from dataclasses import dataclass


@dataclass(frozen=True)
class HostPart:
    """One of `of` hosts, `at` from 0: it has every client whose number leaves that remainder.

    So the first clients of a larger group are those of a smaller one on every host.
    """

    at: int = 0
    of: int = 1

    def indices(self, clients: int) -> range:
        """The numbers of its clients, of so many in all."""
        return range(self.at, clients, self.of)


#: All clients are on one host.
WHOLE = HostPart()
