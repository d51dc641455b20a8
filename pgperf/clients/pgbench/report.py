"""What pgbench reports of a run: its summary on stdout, and the log of its transactions."""

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from pgperf.core.exceptions import PgperfError

_HEADER = re.compile(r"^pgbench \((.+?)(?:, server (.+))?\)$", re.MULTILINE)
_PROCESSED = re.compile(r"^number of transactions actually processed: (\d+)", re.MULTILINE)
_FAILED = re.compile(r"^number of failed transactions: (\d+)", re.MULTILINE)
_CONNECTION = re.compile(r"^average connection time = ([\d.]+) ms$", re.MULTILINE)
_TPS = re.compile(r"^tps = ([\d.]+) \((?:without initial connection|including reconnection)", re.MULTILINE)


@dataclass(frozen=True)
class Summary:
    """The summary that pgbench prints. `connection_ms`: with -C, connecting and closing together."""

    transactions: int
    failed: int
    tps: float
    server_version: str
    connection_ms: float | None = None

    @classmethod
    def of(cls, text: str) -> Self:
        """Raises PgperfError for text that is not the summary of pgbench 14 or newer."""
        header, processed, tps = (rule.search(text) for rule in (_HEADER, _PROCESSED, _TPS))
        if not (header and processed and tps):
            raise PgperfError(
                "pgbench printed no summary that pgperf knows: is it pgbench of PostgreSQL 14 or newer?"
            )
        failed, connection = _FAILED.search(text), _CONNECTION.search(text)
        return cls(
            transactions=int(processed[1]),
            failed=int(failed[1]) if failed else 0,
            tps=float(tps[1]),
            server_version=(header[2] or header[1]).partition(" ")[0],
            connection_ms=float(connection[1]) if connection else None,
        )

    @property
    def window_ns(self) -> int:
        """The time over which pgbench counted: from the moment when all clients were connected."""
        return round(self.transactions / self.tps * 1e9) if self.tps else 0

    def mean_s(self, clients: int) -> float:
        """The mean time of a transaction, with its connection under -C; 0 where none ended."""
        return clients / self.tps if self.tps else 0.0


@dataclass(frozen=True)
class Transaction:
    """One line of the log, ns. With -C, `latency_ns` is without connecting and closing."""

    end_ns: int
    latency_ns: int


def transactions(lines: Iterable[str], epoch_ns: int) -> list[list[Transaction]]:
    """The transactions of each client in order, from the lines of its logs.

    `epoch_ns`: what to subtract from the log's time to get CLOCK_MONOTONIC.
    """
    found: dict[int, list[Transaction]] = defaultdict(list)
    for line in lines:
        client, _number, latency_us, _script, second, microsecond, *_rest = line.split()
        end_ns = int(second) * 1_000_000_000 + int(microsecond) * 1000 - epoch_ns
        found[int(client)].append(Transaction(end_ns, int(latency_us) * 1000))
    return [sorted(found[client], key=lambda one: one.end_ns) for client in sorted(found)]
