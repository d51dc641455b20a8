"""Signals a site may connect to. Receivers get `run` (a `pgperf.models.Run`); their exceptions are
logged and dropped.

They are sent in the process that moved the run (a Celery worker as a rule), after the change is
committed.
"""

from django.dispatch import Signal

#: A run was claimed and starts to measure.
run_started = Signal()

#: A run ended, in whatever state: look at `run.status`. A done run has its results; pgperf stores the
#: environment and the partial summary of another one after its end.
run_finished = Signal()

#: A run ended in the state failed or lost; `run.error` says why. Sent after `run_finished`.
run_failed = Signal()

#: A run ended as done, and with it a step of its benchmark or the headline figure was found to have
#: changed. Sent once for each change, after `run_finished`. Receivers also get `change` (a
#: `pgperf.models.ChangePoint`); that of the headline figure has `layers`, what each layer's step did.
change_found = Signal()
