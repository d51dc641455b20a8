"""A process that hangs ends itself, and one that gives signs of life does not."""

import threading

import pytest

from pgperf.worker.lifeline import Lifeline


def test_without_a_sign_of_life_it_ends_the_process() -> None:
    ended = threading.Event()
    with Lifeline(0.05, ended.set, grace_s=0):
        assert ended.wait(30)


def test_signs_of_life_keep_it_from_that() -> None:
    ended = threading.Event()
    with Lifeline(3_600, ended.set) as lifeline:
        lifeline.alive()
    assert not ended.is_set()


def test_it_is_over_with_its_context() -> None:
    ended, before = threading.Event(), threading.enumerate()
    with Lifeline(3_600, ended.set, grace_s=0):
        (watch,) = (
            each for each in threading.enumerate() if each.name == "pgperf-lifeline" and each not in before
        )
    assert not watch.is_alive()
    assert not ended.is_set()


def test_a_process_that_was_suspended_may_still_say_that_it_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    ended, waits = threading.Event(), iter([False, False, True])
    lifeline = Lifeline(60, ended.set, grace_s=5)

    def wait(seconds: float) -> bool:
        """It continues late; in the grace, its main thread writes a heartbeat."""
        if seconds == 5:
            lifeline.alive()
        return next(waits)

    monkeypatch.setattr(lifeline._over, "wait", wait)
    lifeline._seen_s -= 3_600
    lifeline._watch()
    assert not ended.is_set()


def test_silence_through_the_grace_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = threading.Event()
    lifeline = Lifeline(60, ended.set, grace_s=5)
    monkeypatch.setattr(lifeline._over, "wait", lambda _seconds: False)
    lifeline._seen_s -= 3_600
    lifeline._watch()
    assert ended.is_set()
