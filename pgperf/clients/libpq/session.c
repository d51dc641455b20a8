#include "session.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define REQUIRE_AUTH_VERSION 160000 /* the first libpq that has this keyword */

/* The result of reading the values; volatile, so that the compiler cannot remove the reads. */
static volatile unsigned values_read;

static void ignore_notice(void *unused, const PGresult *notice)
{
    (void)unused;
    (void)notice;
}

bool session_find_mode(const char *name, enum session_mode *mode)
{
    static const char *const names[] = {"simple", "extended", "prepared"};
    for (int i = 0; i < 3; i++)
        if (strcmp(names[i], name) == 0) {
            *mode = (enum session_mode)i;
            return true;
        }
    return false;
}

bool session_connect(struct session *session, const struct spec *spec, struct failure *failure)
{
    char port[24], timeout[24];
    bool knows_require_auth = PQlibVersion() >= REQUIRE_AUTH_VERSION;
    snprintf(port, sizeof port, "%" PRId64, spec->port);
    snprintf(timeout, sizeof timeout, "%" PRId64, spec->connect_timeout_s);
    /* With both, libpq connects to hostaddr, and checks the certificate against host. */
    bool is_named = *spec->certificate_name != '\0';
    const char *const keywords[] = {"host", "hostaddr", "port", "dbname", "user", "password", "sslmode", "sslrootcert",
                                    "connect_timeout", "application_name", "options", "gssencmode", "client_encoding",
                                    "passfile", knows_require_auth ? "require_auth" : NULL, NULL};
    /* The passfile cannot exist, so only the spec provides a password. */
    const char *const values[] = {is_named ? spec->certificate_name : spec->host, is_named ? spec->host : "", port,
                                  spec->dbname, spec->user, spec->password, spec->sslmode, spec->sslrootcert, timeout,
                                  spec->application_name, spec->options, "disable", "UTF8", "/dev/null/none",
                                  spec->require_auth, NULL};
    session->connection = PQconnectdbParams(keywords, values, 0);
    session->number++;
    if (PQstatus(session->connection) != CONNECTION_OK) {
        failure_set(failure, "", PQerrorMessage(session->connection));
        return false;
    }
    PQsetNoticeReceiver(session->connection, ignore_notice, NULL);
    return true;
}

void session_close(struct session *session)
{
    PQfinish(session->connection);
    session->connection = NULL;
}

/* Uses the server's primary message, without the statement that libpq would quote. */
static bool fail(struct session *session, PGresult *result, struct failure *failure)
{
    const char *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    const char *sqlstate = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    failure_set(failure, sqlstate, message && *message ? message : PQerrorMessage(session->connection));
    PQclear(result);
    return false;
}

static bool refuse(PGresult *result, struct failure *failure, const char *message)
{
    failure_set(failure, "", message);
    PQclear(result);
    return false;
}

static void read_values(const PGresult *result, int rows)
{
    int columns = PQnfields(result);
    unsigned read = 0;
    for (int row = 0; row < rows; row++)
        for (int column = 0; column < columns; column++)
            if (!PQgetisnull(result, row, column)) {
                const char *value = PQgetvalue(result, row, column);
                read += (unsigned)PQgetlength(result, row, column) + (unsigned char)*value;
            }
    values_read = read;
}

static bool take(struct session *session, PGresult *result, int64_t *rows, struct failure *failure)
{
    int count;
    switch (PQresultStatus(result)) {
    case PGRES_TUPLES_OK:
        count = PQntuples(result);
        read_values(result, count);
        *rows += count;
        break;
    case PGRES_COMMAND_OK:
        break;
    case PGRES_EMPTY_QUERY:
        return refuse(result, failure, "the statement is empty");
    case PGRES_COPY_IN:
    case PGRES_COPY_OUT:
    case PGRES_COPY_BOTH:
        return refuse(result, failure, "this client cannot run COPY");
    default:
        return fail(session, result, failure);
    }
    PQclear(result);
    return true;
}

static bool prepare(struct session *session, struct statement *statement, struct failure *failure)
{
    PGresult *result = PQprepare(session->connection, statement->name, statement->numbered,
                                 statement->oid_count, statement->oids);
    if (PQresultStatus(result) != PGRES_COMMAND_OK)
        return fail(session, result, failure);
    PQclear(result);
    statement->prepared_on = session->number;
    return true;
}

static PGresult *execute(struct session *session, const struct statement *statement)
{
    if (session->mode == SESSION_SIMPLE)
        return PQexec(session->connection, statement->literal);
    if (session->mode == SESSION_EXTENDED)
        return PQexecParams(session->connection, statement->numbered, statement->value_count, statement->oids,
                            statement->values, NULL, NULL, 0);
    return PQexecPrepared(session->connection, statement->name, statement->value_count, statement->values, NULL, NULL,
                          0);
}

bool session_prepare(struct session *session, struct statement *statement, struct failure *failure)
{
    bool prepares = session->mode == SESSION_PREPARED && statement->prepared_on != session->number;
    return !prepares || prepare(session, statement, failure);
}

static bool run_one(struct session *session, struct statement *statement, int64_t *rows, struct failure *failure)
{
    return session_prepare(session, statement, failure) &&
           take(session, execute(session, statement), rows, failure);
}

bool session_run(struct session *session, struct statements *statements, int64_t *rows, struct failure *failure)
{
    for (int i = 0; i < statements->count; i++)
        if (!run_one(session, &statements->items[i], rows, failure))
            return false;
    return true;
}

PGresult *session_query(struct session *session, const char *sql, struct failure *failure)
{
    PGresult *result = PQexec(session->connection, sql);
    ExecStatusType status = PQresultStatus(result);
    if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK)
        return result;
    if (status == PGRES_FATAL_ERROR)
        fail(session, result, failure);
    else
        refuse(result, failure, "this client cannot run the statement");
    return NULL;
}
