"""What the operating system refuses is explained, with the remedy."""

import errno
import os
from typing import Any

import pytest

from pgperf.core import system_limits


def os_error(code: int) -> OSError:
    return OSError(code, os.strerror(code))


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable"), "pids.max"),
        (RuntimeError("can't start new thread"), "pids.max"),
        (MemoryError(), "more memory"),
        (os_error(errno.ENOMEM), "more memory"),
        (os_error(errno.EMFILE), "ulimit -n"),
        (os_error(errno.ENFILE), "ulimit -n"),
        (os_error(errno.ENOSPC), "no space"),
        (os_error(errno.EDQUOT), "no space"),
    ],
)
def test_a_limit_of_the_system_is_explained(error: BaseException, words: str) -> None:
    assert words in system_limits.explanation(error)


@pytest.mark.parametrize(
    "error", [os_error(errno.ENOENT), OSError("no number"), RuntimeError("other"), ValueError("11")]
)
def test_other_errors_are_not(error: Any) -> None:
    assert system_limits.explanation(error) == ""
