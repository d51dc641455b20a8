"""What a run's CPU times are where the hypervisor stole time from it, in a sentence."""

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

_KEY = "steal_in_cpu_times"


def note(environment: Mapping[str, Any]) -> str:
    """Whether CPU times contain stolen time; "" on a machine without a hypervisor, and in a run of a
    version that did not look.
    """
    machine = environment.get("machine")
    if not isinstance(machine, dict) or _KEY not in machine or machine.get("hypervisor") is False:
        return ""
    if machine[_KEY] is None:
        return _(
            "Whether CPU times contain time that the hypervisor stole (steal) is not known here. If they do, a"
            " CPU time may be longer than the work by up to the stolen time; if not, the stolen time is part of"
            " the waiting."
        )
    if machine[_KEY]:
        return _(
            "Time that the hypervisor stole (steal) is part of CPU times here: this kernel counts it for the"
            " process that was interrupted. So a CPU time may be longer than the work by up to the stolen time."
        )
    return _(
        "Time that the hypervisor stole (steal) is not part of CPU times here: this kernel subtracts it from"
        " the CPU time of each process. In the time of an operation it is part of the waiting."
    )
