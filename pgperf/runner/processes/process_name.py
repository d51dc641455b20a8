"""The name of a process on this machine."""

import psutil


def process_name(pid: int) -> str:
    """ "" where it is not visible."""
    try:
        return str(psutil.Process(pid).name())
    except psutil.Error:
        return ""
