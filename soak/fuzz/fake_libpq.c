#include "fake_libpq.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct pg_conn {
    char error[4096];
    int64_t sent; /* results that are due, each followed by NULL */
    bool between; /* was the last result not yet followed by NULL? */
    bool synced;  /* is a synchronisation due after them? */
};

/* Each value is a separate allocation, so that a sanitizer detects a read beyond its end. */
struct pg_result {
    ExecStatusType status;
    int rows;
    int columns;
    char *values[];
};

struct fake_server fake_server = {.answers = INT64_MAX, .rows = 1, .columns = 1, .status = PGRES_TUPLES_OK};

PGconn *PQconnectdbParams(const char *const *keywords, const char *const *values, int expand)
{
    PGconn *connection = calloc(1, sizeof *connection);
    (void)expand;
    for (int i = 0; keywords[i]; i++)
        if (strcmp(keywords[i], "password") == 0)
            snprintf(fake_server.password, sizeof fake_server.password, "%s", values[i]);
    if (connection)
        snprintf(connection->error, sizeof connection->error, "no entry for %.900s, %.3000s \n", fake_server.password,
                 fake_server.complaint ? fake_server.complaint : "");
    return connection;
}

void PQfinish(PGconn *connection)
{
    free(connection);
}

ConnStatusType PQstatus(const PGconn *connection)
{
    return connection && !fake_server.refuses ? CONNECTION_OK : CONNECTION_BAD;
}

char *PQerrorMessage(const PGconn *connection)
{
    static char nothing[] = "connection pointer is NULL\n";
    return connection ? ((PGconn *)connection)->error : nothing;
}

int PQbackendPID(const PGconn *connection)
{
    return connection ? 4711 : 0;
}

const char *PQparameterStatus(const PGconn *connection, const char *name)
{
    return connection && strcmp(name, "server_version") == 0 ? "18.6" : NULL;
}

int PQlibVersion(void)
{
    return 180006;
}

PQnoticeReceiver PQsetNoticeReceiver(PGconn *connection, PQnoticeReceiver receiver, void *argument)
{
    (void)connection;
    (void)argument;
    return receiver;
}

/* NULL without memory, as in libpq. */
static PGresult *new_result(ExecStatusType status)
{
    bool has_rows = status == PGRES_TUPLES_OK;
    int rows = has_rows ? fake_server.rows : 0, columns = has_rows ? fake_server.columns : 0;
    PGresult *result = calloc(1, sizeof *result + (size_t)(rows * columns) * sizeof *result->values);
    if (!result)
        return NULL;
    *result = (PGresult){status, rows, columns};
    for (int i = 0; i < rows * columns; i++)
        result->values[i] = i % 3 == 2 ? NULL : calloc(1, 1 + (size_t)i % 3);
    return result;
}

void PQclear(PGresult *result)
{
    for (int i = 0; result && i < result->rows * result->columns; i++)
        free(result->values[i]);
    free(result);
}

static PGresult *answer(PGconn *connection, ExecStatusType status)
{
    if (!connection || fake_server.answers <= 0)
        return new_result(PGRES_FATAL_ERROR);
    fake_server.answers--;
    return new_result(status);
}

PGresult *PQprepare(PGconn *connection, const char *name, const char *query, int count, const Oid *types)
{
    (void)count;
    (void)types;
    return answer(connection, *name && strlen(query) < SIZE_MAX ? PGRES_COMMAND_OK : PGRES_FATAL_ERROR);
}

PGresult *PQexec(PGconn *connection, const char *query)
{
    return answer(connection, *query ? fake_server.status : PGRES_EMPTY_QUERY);
}

/* Reads every value, as libpq would, so that a sanitizer detects a list shorter than announced. */
static PGresult *execute(PGconn *connection, int count, const char *const *values)
{
    size_t length = 0;
    for (int i = 0; i < count; i++)
        length += values[i] ? strlen(values[i]) : 0;
    return answer(connection, length < SIZE_MAX ? fake_server.status : PGRES_FATAL_ERROR);
}

PGresult *PQexecParams(PGconn *connection, const char *query, int count, const Oid *types, const char *const *values,
                       const int *lengths, const int *formats, int result_format)
{
    Oid sum = 0;
    (void)lengths;
    (void)formats;
    (void)result_format;
    for (int i = 0; types && i < count; i++)
        sum += types[i];
    return *query || sum ? execute(connection, count, values) : answer(connection, PGRES_EMPTY_QUERY);
}

PGresult *PQexecPrepared(PGconn *connection, const char *name, int count, const char *const *values,
                         const int *lengths, const int *formats, int result_format)
{
    (void)name;
    (void)lengths;
    (void)formats;
    (void)result_format;
    return execute(connection, count, values);
}

int PQputCopyData(PGconn *connection, const char *data, int length)
{
    int sum = 0;
    for (int i = 0; i < length; i++)
        sum += data[i];
    return connection && fake_server.answers > 0 && sum != -1 ? 1 : -1;
}

int PQputCopyEnd(PGconn *connection, const char *fault)
{
    (void)fault;
    connection->sent = 1;
    return 1;
}

int PQenterPipelineMode(PGconn *connection)
{
    return connection && fake_server.answers > 0;
}

int PQexitPipelineMode(PGconn *connection)
{
    return connection->sent == 0;
}

int PQpipelineSync(PGconn *connection)
{
    connection->synced = true;
    return 1;
}

int PQsendQueryParams(PGconn *connection, const char *query, int count, const Oid *types, const char *const *values,
                      const int *lengths, const int *formats, int result_format)
{
    PQclear(PQexecParams(connection, query, count, types, values, lengths, formats, result_format));
    connection->sent++;
    return fake_server.answers > 0;
}

int PQsendQueryPrepared(PGconn *connection, const char *name, int count, const char *const *values,
                        const int *lengths, const int *formats, int result_format)
{
    PQclear(PQexecPrepared(connection, name, count, values, lengths, formats, result_format));
    connection->sent++;
    return fake_server.answers > 0;
}

PGresult *PQgetResult(PGconn *connection)
{
    if (connection->between) {
        connection->between = false;
        return NULL;
    }
    if (connection->sent) {
        connection->sent--;
        connection->between = true;
        return answer(connection, PGRES_COMMAND_OK);
    }
    if (!connection->synced)
        return NULL;
    connection->synced = false;
    return new_result(PGRES_PIPELINE_SYNC);
}

ExecStatusType PQresultStatus(const PGresult *result)
{
    return result ? result->status : PGRES_FATAL_ERROR;
}

char *PQresultErrorField(const PGresult *result, int field)
{
    static char state[] = "57P01", message[4096];
    if (!result || fake_server.rows % 2)
        return NULL;
    if (field == PG_DIAG_SQLSTATE)
        return state;
    snprintf(message, sizeof message, "terminated, %.900s, %.3000s", fake_server.password,
             fake_server.complaint ? fake_server.complaint : "");
    return message;
}

int PQntuples(const PGresult *result)
{
    return result ? result->rows : 0;
}

int PQnfields(const PGresult *result)
{
    return result ? result->columns : 0;
}

/* Some of the names need escapes in JSON. */
char *PQfname(const PGresult *result, int column)
{
    static char plain[] = "plain", odd[] = "\"odd\\\n\xc3\xbc\"", empty[] = "";
    char *const names[] = {plain, odd, empty};
    return result && column >= 0 && column < result->columns ? names[column % 3] : NULL;
}

int PQgetisnull(const PGresult *result, int row, int column)
{
    return !result->values[row * result->columns + column];
}

char *PQgetvalue(const PGresult *result, int row, int column)
{
    return result->values[row * result->columns + column];
}

int PQgetlength(const PGresult *result, int row, int column)
{
    return (row * result->columns + column) % 3;
}
