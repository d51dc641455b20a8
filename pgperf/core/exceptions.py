"""The errors that pgperf raises. Each message says what is wrong and what to do about it."""

import re

#: What a user can do about an operation whose result is too large.
FEWER_ROWS = (
    "Read fewer rows (LIMIT) or columns, choose fewer clients or layers, or raise PGPERF['RUN_MEMORY_MB']"
)


class PgperfError(Exception):
    """Base of all errors below; never raised itself. The message is safe to show to a user."""


class InvalidDefinition(PgperfError):
    """A benchmark, workload or option that cannot be run as written.

    The message names the field.
    """


class LayerUnavailable(PgperfError):
    """This machine cannot run a layer, or a layer lacks a statement mode. The message says why."""


class PreflightRefused(PgperfError):
    """The run would exceed a guardrail (connections, memory, time). The message has the numbers."""


class BudgetTooShort(PreflightRefused):
    """Six blocks do not fit into the run's time budget. The message names the least time."""


#: The remedy in the message of BudgetTooShort.
ASKED_BUDGET = "set a time budget of {} s or more"


def asked_budget_s(message: str) -> int | None:
    """The time budget that such a message asks for; None of any other message."""
    found = re.search(ASKED_BUDGET.format(r"(\d{1,6})"), message)
    return int(found[1]) if found else None


class SessionNotFound(PreflightRefused):
    """A load host does not find the session that the owner of its run made for a page's user.

    The message says what may differ on that host.
    """


class PageRefused(PreflightRefused):
    """A page that may not be requested from a web server of a production database.

    The message names the page, the reason and the remedy.
    """


class TimeIsUp(PgperfError):
    """A run waited for a client until long after its time budget. It keeps its finished blocks."""


class LookFailed(PgperfError):
    """The look at the machine could not be made. The message says why."""


class CredentialError(PgperfError):
    """A credential reference that does not resolve here. The message never contains the secret."""


class ClientFailed(PgperfError):
    """A client reported an error, died, or missed its deadline.

    `sqlstate`: the server's code, "" without one.
    """

    def __init__(self, message: str, sqlstate: str = "") -> None:
        super().__init__(message)
        self.sqlstate = sqlstate


class WriteRefused(ClientFailed):
    """An operation of the site writes, which its read-only session refused.

    The message has the statement's verb and table, never a value.
    """


class UnusableOptions(PgperfError):
    """Django cannot connect, or use a connection, with the OPTIONS of an alias of DATABASES.

    The message names the alias and the options, never a value.
    """


class HookFailed(PgperfError):
    """A hook of the site, called before a block, raised an exception. The message names the hook."""


class ReconnectFailed(PgperfError):
    """A client got no connection for its next operation. Its cause is the driver's error."""


class ConnectionReplaced(PgperfError):
    """A pool gave a client another connection than before. The message says what to do."""


class ServerError(PgperfError):
    """What a server said of a statement, where the program that asked gives no SQLSTATE."""


class RequestFailed(PgperfError):
    """An HTTP request without the page as its answer.

    `reason` is the kind of failure, the same words for all of a kind; the message has the details.
    """

    def __init__(self, reason: str, details: str = "") -> None:
        super().__init__(f"{reason}: {details}" if details else reason)
        self.reason = reason


class OutOfMemory(ClientFailed):
    """A client needs more memory than it may take. The message says what to do."""


class UnexpectedAnswer(ClientFailed):
    """A server answered a control query with columns or values that the query cannot have.

    The message names the route and the server.
    """


class ProtocolError(ClientFailed):
    """A client sent something that the wire protocol does not allow."""


class LoadLimitPassed(PgperfError):
    """A production server's load passed a limit while a run measured.

    The message has the number, the limit and the setting.
    """


class RunCancelled(PgperfError):
    """The run ended because a user cancelled it."""


class RunConflict(PgperfError):
    """The run's state does not allow a change of state, or another run uses the database."""


class FenceLost(RunConflict):
    """Another attempt owns the run now. This attempt must stop writing."""


class RunWaits(RunConflict):
    """Another run uses the database or the load host. This run stays queued."""


class FixtureMissing(PgperfError):
    """The workload's tables are missing, and pgperf may not or cannot create them.

    The message has the remedy.
    """


class BrokerUnreachable(PgperfError):
    """Celery's broker did not accept a message in time. The run stays queued."""


class AgentFailed(PgperfError):
    """The agent on a database's host is missing, refuses, does not answer, or sends unusable data.

    Says which.
    """


class OrdersLost(PgperfError):
    """The row with the orders to a worker on another host is gone, or its answer is too long."""


class LoadHostFailed(PgperfError):
    """A load host is missing, refuses, died, or fell silent. The message names it, as does `host`."""

    def __init__(self, host: str, why: str) -> None:
        super().__init__(f"load host {host}: {why}")
        self.host = host


class LoadHostLate(PgperfError):
    """A load host got the order of a slice after its start, or its clock was not known well enough
    during it. The round is void and can be repeated.

    `host` is its name, where the owner knows it. `needs_time`: may more time before the start help?
    """

    def __init__(self, message: str, host: str = "", needs_time: bool = True) -> None:
        super().__init__(message)
        self.host, self.needs_time = host, needs_time


class UnreadableBlock(PgperfError):
    """A stored block that this version cannot read: a later version wrote it, or it is corrupt."""


class TransferError(PgperfError):
    """A file of definitions cannot be read, or cannot represent a definition.

    The message says where and why.
    """


class NothingToCompare(PgperfError):
    """Two runs cannot be compared: one is in progress, or they share no variant."""
