"""The records of the calculation: the server that is to be tuned, and one advised setting (pure)."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from pgperf.core.exceptions import InvalidDefinition
from pgperf.tuning import sizes

#: What a server is used for.
PROFILES = ("web", "oltp", "dw", "mixed", "desktop")
STORAGE = ("ssd", "nvme", "san", "hdd")
#: The size of the database beside the memory.
DATA_SIZES = ("fits", "similar", "larger")
#: PostgreSQL accepts every value that the calculation gives within these bounds.
MEMORY_KB = (64 * sizes.UNITS["MB"], 16 * sizes.UNITS["TB"])
CPUS = (1, 1024)
CONNECTIONS = (10, 10_000)
#: Outside these bounds the calculation says little, according to its authors.
USUAL_KB = (256 * sizes.UNITS["MB"], 100 * sizes.UNITS["GB"])


@dataclass(frozen=True, kw_only=True)
class Server:
    """A server that is to be tuned. Raises InvalidDefinition, which names the wrong field.

    `cpus` None: unknown. `connections` None: as many as the profile usually has. `version`: of
    PostgreSQL, 18.0 or 9.6.
    """

    memory_kb: int
    version: float
    cpus: int | None = None
    profile: str = "web"
    connections: int | None = None
    storage: str = "ssd"
    data_size: str = "similar"

    def __post_init__(self) -> None:
        _check_range("memory", self.memory_kb, MEMORY_KB, sizes.shown)
        _check_range("cpus", self.cpus, CPUS)
        _check_range("connections", self.connections, CONNECTIONS)
        for field, choices in (("profile", PROFILES), ("storage", STORAGE), ("data_size", DATA_SIZES)):
            if getattr(self, field) not in choices:
                raise InvalidDefinition(
                    f"{field}: {str(getattr(self, field))[:40]!r} is unknown; choose from {', '.join(choices)}"
                )


def _check_range(
    field: str, value: int | None, bounds: tuple[int, int], text: Callable[[int], str] = str
) -> None:
    low, high = bounds
    if value is not None and not low <= value <= high:
        raise InvalidDefinition(f"{field}: {text(value)} is not allowed; choose {text(low)} to {text(high)}")


def version_of(text: str) -> float | None:
    """The version in "18.6 (Debian 18.6-1)" as 18.0, in "9.6.24" as 9.6; None without one."""
    found = re.match(r"(\d{1,4})(?:\.(\d))?", text)
    if not found:
        return None
    major = int(found[1])
    return float(major) if major >= 10 else major + int(found[2] or 0) / 10


@dataclass(frozen=True)
class Advice:
    """One advised setting: its value as SHOW prints it, and one line of why. `risk`: when a server
    does not start with it, in words for the comment of a statement.
    """

    name: str
    value: str
    why: str
    risk: str = ""

    @classmethod
    def size(cls, name: str, kb: int, why: str) -> Self:
        return cls(name, sizes.shown(kb), why)
