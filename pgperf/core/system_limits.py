"""Errors of an operating system that refuses more processes, memory, files or disk space."""

import errno

_PROCESSES = (
    "processes: the system let the worker start no more processes or threads. Choose fewer clients, or raise the "
    "limit of the worker's control group (pids.max, TasksMax of systemd) or user (ulimit -u)"
)
_MEMORY = (
    "memory: the system gave the worker no more memory. Choose fewer clients, or raise the memory limit of the "
    "worker's control group or machine"
)
_FILES = "files: the worker may open no more files. Choose fewer clients, or raise its limit (ulimit -n)"
_DISK = "disk: no space is left on the worker's machine for temporary files"

_BY_ERRNO = {
    errno.EAGAIN: _PROCESSES,
    errno.ENOMEM: _MEMORY,
    errno.EMFILE: _FILES,
    errno.ENFILE: _FILES,
    errno.ENOSPC: _DISK,
    errno.EDQUOT: _DISK,
}
_NO_THREAD = "can't start new thread"  # the text of Python's RuntimeError


def explanation(error: BaseException) -> str:
    """What the system refused, with the remedy; "" for any other error."""
    if isinstance(error, MemoryError):
        return _MEMORY
    if isinstance(error, RuntimeError) and str(error) == _NO_THREAD:
        return _PROCESSES
    return _BY_ERRNO.get(error.errno or 0, "") if isinstance(error, OSError) else ""
