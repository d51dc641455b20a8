"""A process that hangs ends itself, and one that gives signs of life does not."""

import threading
import time

from pgperf.worker.lifeline import Lifeline


def test_without_a_sign_of_life_it_ends_the_process() -> None:
    ended = threading.Event()
    with Lifeline(0.05, ended.set):
        assert ended.wait(30)


def test_signs_of_life_keep_it_from_that() -> None:
    ended = threading.Event()
    with Lifeline(3_600, ended.set) as lifeline:
        lifeline.alive()
    assert not ended.is_set()


def test_it_is_over_with_its_context() -> None:
    ended = threading.Event()
    with Lifeline(0.2, ended.set):
        pass
    time.sleep(0.3)
    assert not ended.is_set()
