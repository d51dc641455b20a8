"""The errors of a connection that was not made, in words that no server chose.

A server could write a password that it received into its error, reversed or encoded, where no
scrubbing finds it. So pgperf shows nothing of what a server wrote: of its SQLSTATE, if pgperf knows
it, the meaning. libpq's own errors are shown if their text is one of those below.
"""

import errno
import os

#: SQLSTATE -> meaning, for the errors with which PostgreSQL and PgBouncer end a login.
MEANINGS = {
    "08006": "the pooler could not connect to the server, or not log in there",
    "08P01": "the server or the pooler refused a message or a parameter of the connection (poolers refuse options)",
    "0A000": "the server does not support what the connection asks for",
    "22023": "the server refused the value of a setting, or the role that it should assume",
    "28000": "the server does not let this user, from this machine, into this database"
    " (pg_hba.conf; whether the role exists and may log in; a client certificate)",
    "28P01": "wrong password, or the user has none",
    "3D000": "the database does not exist",
    "42501": "the role lacks a permission: to connect to the database, to set a setting, or to assume a role",
    "42704": "the server does not know a setting or a role that the connection asks for",
    "53300": "the server or the pooler has no free connection slot",
    "55000": "the database does not accept connections",
    "57P01": "the server was shut down, or an administrator ended the connection",
    "57P02": "the server crashed",
    "57P03": "the server is starting up, shutting down or recovering",
}  # fmt: skip

#: Parts of the English errors of PostgreSQL and PgBouncer -> SQLSTATE, which libpq does not pass on
#: when a connection fails.
_OF_SERVERS = {
    "password authentication failed": "28P01",
    "SASL authentication failed": "28P01",
    "no pg_hba.conf entry": "28000",
    "pg_hba.conf rejects connection": "28000",
    "authentication failed for user": "28000",
    "is not permitted to log in": "28000",
    "connection requires a valid client certificate": "28000",
    "no such user": "28000",
    "no such database": "3D000",
    "too many clients already": "53300",
    "connection slots are reserved": "53300",
    "too many connections for": "53300",
    "no more connections allowed": "53300",
    "the database system is": "57P03",
    "the database system was not": "57P03",
    "is not currently accepting connections": "55000",
    "terminating connection due to administrator command": "57P01",
    "permission denied": "42501",
    "unrecognized configuration parameter": "42704",
    "unsupported startup parameter": "08P01",
    "invalid value for parameter": "22023",
    "invalid command-line argument": "22023",
    "server login has been failing": "08006",
    "server login failed": "08006",
    "query_wait_timeout": "08006",
    "pgbouncer cannot connect to server": "08006",
}
_DOES_NOT_EXIST = {'database "': "3D000", 'role "': "28000"}

CLEAR_TEXT = (
    "the server asks for the password in clear text, so it was not sent. If the server checks passwords by LDAP, PAM"
    " or RADIUS, or takes tokens, choose sslmode verify-full for the target and tick 'allow clear-text password'"
)

#: Parts of errors that libpq, a driver or the system writes -> what is shown.
_OF_CLIENTS = {
    "server requested a cleartext password": CLEAR_TEXT,
    "no password supplied": "the server asks for a password, and the credential has none",
    "authentication method requirement": "the server asks for another kind of login than require_auth allows",
    "could not translate host name": "the host name cannot be resolved",
    "getaddrinfo failed": "the host name cannot be resolved",
    "Name or service not known": "the host name cannot be resolved",
    "Temporary failure in name resolution": "the host name cannot be resolved at the moment",
    "No address associated with hostname": "the host name has no address",
    "certificate verify failed": "SSL error: certificate verify failed",
    "certificate is not accepted: Hostname mismatch": "the server's certificate does not match the host name",
    "does not match host name": "the server's certificate does not match the host name",
    "the server's certificate is not accepted": "SSL error: certificate verify failed",
    "root certificate file": "the file of root certificates does not exist (the Target's sslrootcert;"
    " ~/.postgresql/root.crt by default)",
    "SSL support is not compiled in": "SSL support is not compiled in",
    "server does not support SSL, but SSL was required": "server does not support SSL, but SSL was required",
    "invalid response to SSL negotiation": "received invalid response to SSL negotiation",
    "server sent an error response during SSL exchange": "server sent an error response during SSL exchange",
    "could not establish SSL connection": "could not establish SSL connection",
    "SSL connection has been closed unexpectedly": "SSL connection has been closed unexpectedly",
    "SSL SYSCALL error": "SSL SYSCALL error",
    "could not load private key file": "could not load private key file (sslkey)",
    "private key file": "the private key file cannot be used (sslkey)",
    "could not read certificate file": "could not read certificate file (sslcert)",
    "channel binding": "channel binding was required, and is not possible",
    "SASL authentication mechanisms are supported": "none of the server's SASL authentication mechanisms are supported",
    "incorrect server signature": "incorrect server signature: it does not know the password",
    "SCRAM": "the SCRAM exchange failed",
    "session is read-only": "session is read-only (target_session_attrs)",
    "session is not read-only": "session is not read-only (target_session_attrs)",
    "server is in hot standby mode": "server is in hot standby mode (target_session_attrs)",
    "server is not in hot standby mode": "server is not in hot standby mode (target_session_attrs)",
    "server closed the connection unexpectedly": "server closed the connection unexpectedly",
    "unexpected connection_lost": "server closed the connection unexpectedly",
    "connection was closed in the middle": "server closed the connection unexpectedly",
    "timeout expired": "timeout expired",
    "couldn't get a connection after": "the pool had no connection in time: another user of the pool keeps it,"
    " or the server gives it no new one",
    "no answer in time": "timeout expired",
    "expected authentication request from server": "expected authentication request from server: is it PostgreSQL?",
    "received invalid authentication request": "received invalid authentication request: is it PostgreSQL?",
    "could not send startup packet": "could not send startup packet",
}  # fmt: skip
_OF_CLIENTS |= {
    f"invalid {key} value": f"invalid value of OPTIONS: {name}"
    for name in ("require_auth", "ssl_min_protocol_version", "ssl_max_protocol_version", "min_protocol_version",
                 "max_protocol_version", "gssdelegation", "sslsni", "integer")
    for key in (name, f'"{name}"')
}  # fmt: skip
_REFUSED = "Connection refused: is the server running on that host, and on that port?"
#: What to do where clients that reconnect use up the local ports.
PORT_REMEDIES = (
    "choose fewer clients, fewer variants that reconnect or a Unix socket, wait until TIME_WAIT has passed, or "
    "set net.ipv4.tcp_tw_reuse = 1 or a wider net.ipv4.ip_local_port_range on this machine"
)
_NO_PORT = f"no local port is free: closed connections wait in TIME_WAIT; {PORT_REMEDIES}"
_OF_SYSTEM = {os.strerror(number): os.strerror(number) for number in errno.errorcode} | {
    os.strerror(errno.ECONNREFUSED): _REFUSED,
    os.strerror(errno.EADDRNOTAVAIL): _NO_PORT,
}
_UNKNOWN = "the connection failed; what the server wrote is not shown here, look into its log"


def shown(message: str, sqlstate: str = "") -> tuple[str, str]:
    """What may be shown of an error on connecting, and its SQLSTATE, "" if it is not known."""
    code = sqlstate if sqlstate in MEANINGS else "" if sqlstate else _sqlstate(message)
    if code:
        return MEANINGS[code], code
    return _own_words(message) or _UNKNOWN, ""


def _own_words(message: str) -> str:
    """The client's errors, one for each address of the host; "" if there is none."""
    found = [text for part, text in _OF_CLIENTS.items() if part in message]
    system = [text for part, text in _OF_SYSTEM.items() if f"failed: {part}" in message]
    texts = dict.fromkeys(found or system)
    return "; ".join(text for text in texts if not any(text in other for other in texts if other != text))


def _sqlstate(message: str) -> str:
    for part, code in _OF_SERVERS.items():
        if part in message:
            return code
    for part, code in _DOES_NOT_EXIST.items():
        if part in message and "does not exist" in message:
            return code
    return ""
