"""Runs whose figures do not matter: their clients hardly warm up, which takes most of a short run."""

from typing import Any

from django.db import transaction

from pgperf.models import Run
from pgperf.runs import state

_request = state.request


def request(*words: Any, **more: Any) -> Run:
    """As `state.request`. The message to a worker follows the row."""
    with transaction.atomic():
        run = _request(*words, **more)
        run.definition = {**run.definition, "warm_up_ms": 1, "warm_up_ops": 5}
        Run.objects.filter(pk=run.pk).update(definition=run.definition)
    return run
