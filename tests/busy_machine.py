"""What a machine that is too busy leaves unseen."""

from collections.abc import Mapping


def too_busy(notes: Mapping[str, str]) -> bool:
    """Did a diagnostic slice see no session because no query of it ended in time?"""
    return "the machine was too busy" in notes.get("wait_events", "")
