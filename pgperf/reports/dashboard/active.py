"""The runs that are running or wait, with their progress."""

from dataclasses import dataclass

from pgperf.models import Run
from pgperf.reports.dashboard.viewer import Viewer
from pgperf.reports.run_names import named_each
from pgperf.runs import state

#: Runs that the dashboard shows; the list of runs has the others.
MOST = 8
_OF_RUN = (
    "benchmark_name",
    "database_name",
    "status",
    "progress",
    "message",
    "worker",
    "requested_at",
    "quick",
)


@dataclass(frozen=True)
class ActiveRun:
    """`message` names other runs if the viewer may see them."""

    run: Run
    message: str

    @property
    def is_running(self) -> bool:
        return self.run.status == Run.Status.RUNNING


@dataclass(frozen=True)
class Active:
    """`runs` are the first ones, those that run before those that wait; `lost` has those whose
    worker is silent.
    """

    runs: tuple[ActiveRun, ...] = ()
    more: int = 0
    lost: tuple[Run, ...] = ()


def active(viewer: Viewer) -> Active:
    """In two queries."""
    found = viewer.rows(Run).filter(status__in=state.ACTIVE).order_by("-status", "pk").only(*_OF_RUN)
    rows = list(state.with_effective_status(found))
    lost = [run for run in rows if run.effective == Run.Status.LOST]  # type: ignore[attr-defined]
    under_way = [run for run in rows if run not in lost]
    shown = under_way[:MOST]
    messages = named_each([run.message for run in shown], viewer.user)
    pairs = zip(shown, messages, strict=True)
    return Active(tuple(ActiveRun(*pair) for pair in pairs), len(under_way) - len(shown), tuple(lost))
