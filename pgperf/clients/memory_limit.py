"""The memory limit of a client: the kernel refuses it more data than its spec allows.

RLIMIT_DATA counts private writable memory, touched or not. RLIMIT_AS would also count address space
that a process only reserves, without the permission to write, as sites with large libraries do.
"""

from collections.abc import Iterator
from contextlib import suppress
from errno import ENOMEM
from resource import RLIM_INFINITY, RLIMIT_DATA, getpagesize, getrlimit, setrlimit

from pgperf.core.exceptions import ServerError
from pgperf.core.protocol import MAX_SAMPLES

#: The recorded end times, and the durations made from them.
_OWN_BYTES = 2 * 8 * MAX_SAMPLES
#: To report an error after the limit was reached.
_RESERVE_BYTES = 16 << 20
_STATM_DATA = 5  # the field of /proc/self/statm that counts pages of data


def limit(more_bytes: int) -> int:
    """Let this process take so many bytes beyond what it has now; 0: no limit.

    Returns the limit in force in bytes, 0 if there is none.
    """
    if more_bytes <= 0:
        return 0
    try:
        soft = _data_bytes() + _OWN_BYTES + more_bytes
        hard = _lower(soft + _RESERVE_BYTES, getrlimit(RLIMIT_DATA)[1])
        setrlimit(RLIMIT_DATA, (min(soft, hard), hard))
    except (OSError, ValueError):  # no /proc, or a system that forbids it
        return 0
    return min(soft, hard)


def lift() -> None:
    """Raise the limit by the reserve, so that an error can be reported."""
    with suppress(OSError, ValueError):
        hard = getrlimit(RLIMIT_DATA)[1]
        setrlimit(RLIMIT_DATA, (hard, hard))


def is_reached(error: BaseException | None) -> bool:
    """Did this error, or one of its causes, arise because the process got no more memory?

    An error of the server itself has an SQLSTATE and does not count, nor does one that wraps it.
    """
    return any(
        isinstance(each, MemoryError) or getattr(each, "errno", None) == ENOMEM or _says_so(each)
        for each in _chain(error)
    )


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _says_so(error: BaseException) -> bool:
    """Do its own words, not the server's, say so?"""
    is_of_server = _sqlstate(error) or _sqlstate(error.__cause__) or isinstance(error, ServerError)
    return not is_of_server and is_about_memory(str(error))


def is_about_memory(message: str) -> bool:
    """Does libpq or a driver report that it got no memory?"""
    return any(words in message for words in ("out of memory", "cannot allocate memory", "MemoryError"))


def _sqlstate(error: BaseException | None) -> str:
    return getattr(error, "sqlstate", None) or getattr(error, "pgcode", None) or ""


def _data_bytes() -> int:
    with open("/proc/self/statm", "rb") as statm:
        return int(statm.read().split()[_STATM_DATA]) * getpagesize()


def _lower(wanted: int, allowed: int) -> int:
    return wanted if allowed == RLIM_INFINITY else min(wanted, allowed)
