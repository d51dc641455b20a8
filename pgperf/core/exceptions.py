"""Every error pgperf raises on purpose; each message names what is wrong and what to do about it."""


class PgperfError(Exception):
    """Base of all errors below; never raised itself. `str()` of one is safe to show to a user."""


class InvalidDefinition(PgperfError):
    """A benchmark, workload or option that cannot be run as written. The message names the field."""


class LayerUnavailable(PgperfError):
    """This machine cannot run a layer, or a layer lacks a statement mode. The message says why."""


class PreflightRefused(PgperfError):
    """Starting would exceed a rail (connections, memory, time). The message has the numbers."""


class CredentialError(PgperfError):
    """A credential reference that does not resolve here. The message never holds the secret."""


class ClientFailed(PgperfError):
    """A client reported an error, died, or missed its deadline. `sqlstate`: the server's code, "" without one."""

    def __init__(self, message: str, sqlstate: str = "") -> None:
        super().__init__(message)
        self.sqlstate = sqlstate


class ProtocolError(ClientFailed):
    """A client sent something that the wire protocol does not allow."""


class RunCancelled(PgperfError):
    """The run's cancel flag was honoured."""


class RunConflict(PgperfError):
    """A state change that the run's present state does not allow, or another run holds the database."""


class FenceLost(RunConflict):
    """Another attempt owns the run now; this one must stop writing."""


class RunWaits(RunConflict):
    """Another run holds the database or the load host; this one stays queued until its turn."""


class FixtureMissing(PgperfError):
    """The workload's tables are not there and may not, or could not, be made. The message has the remedy."""


class BrokerUnreachable(PgperfError):
    """Celery's broker did not take a message in time. Nothing is lost: the run stays queued."""


class AgentFailed(PgperfError):
    """The agent on a database's host is not there, refused, fell silent, or sent what cannot be used. Says which."""


class UnreadableBlock(PgperfError):
    """A stored block that this version cannot read: written by a later one, or broken."""


class TransferError(PgperfError):
    """A file of definitions that cannot be read, or that cannot hold what it should. The message says where and why."""


class NothingToCompare(PgperfError):
    """Two runs that cannot be set against each other: one is under way, or they share no variant."""
