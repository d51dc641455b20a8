#include "bulk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_copy(const struct spec *spec)
{
    return strcmp(spec->bulk.kind, "copy") == 0;
}

const char *bulk_refusal(const struct session *session, const struct spec *spec)
{
    if (!is_copy(spec) && strcmp(spec->bulk.kind, "batch") != 0)
        return "bulk.kind: choose copy or batch";
    if (spec->statements.count != 1 || spec->statements.items[0].value_count == 0)
        return "bulk: give one statement, whose arguments are the values of a row";
    if (!is_copy(spec) && session->mode == SESSION_SIMPLE)
        return "mode: libpq's pipeline sends no simple statements; choose extended or prepared";
    return NULL;
}

static bool fail(struct session *session, PGresult *result, struct failure *failure)
{
    const char *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    const char *sqlstate = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    failure_set(failure, sqlstate ? sqlstate : "", message && *message ? message : PQerrorMessage(session->connection));
    PQclear(result);
    return false;
}

static void write_value(FILE *line, const char *value)
{
    if (!value) {
        fputs("\\N", line);
        return;
    }
    for (; *value; value++) {
        const char *special = strchr("\\\t\n\r", *value);
        if (special)
            fprintf(line, "\\%c", "\\tnr"[special - "\\\t\n\r"]);
        else
            fputc(*value, line);
    }
}

/* One row in COPY's text format; the caller frees it. */
static char *new_line(const struct statement *statement, size_t *length)
{
    char *text = NULL;
    FILE *line = open_memstream(&text, length);
    if (!line)
        failure_no_memory();
    for (int i = 0; i < statement->value_count; i++) {
        if (i)
            fputc('\t', line);
        write_value(line, statement->values[i]);
    }
    fputc('\n', line);
    if (fclose(line) != 0)
        failure_no_memory();
    return text;
}

/* Takes all results of the COPY command that has ended. */
static bool end_copy(struct session *session, struct failure *failure)
{
    bool worked = true;
    PGresult *result;
    while ((result = PQgetResult(session->connection))) {
        if (PQresultStatus(result) == PGRES_COMMAND_OK)
            PQclear(result);
        else if (worked)
            worked = fail(session, result, failure);
        else
            PQclear(result);
    }
    return worked;
}

static bool put_rows(struct session *session, const struct spec *spec)
{
    size_t length;
    char *line = new_line(&spec->statements.items[0], &length);
    bool worked = true;
    for (int64_t i = 0; worked && i < spec->bulk.rows; i++)
        worked = PQputCopyData(session->connection, line, (int)length) == 1;
    free(line);
    return worked;
}

static bool copy(struct session *session, const struct spec *spec, struct failure *failure)
{
    PGresult *result = PQexec(session->connection, spec->statements.items[0].literal);
    if (PQresultStatus(result) != PGRES_COPY_IN)
        return fail(session, result, failure);
    PQclear(result);
    const char *fault = put_rows(session, spec) ? NULL : "the client could not send its rows";
    if (PQputCopyEnd(session->connection, fault) != 1)
        return fail(session, NULL, failure);
    return end_copy(session, failure);
}

static bool send_row(struct session *session, const struct statement *statement)
{
    if (session->mode == SESSION_PREPARED)
        return PQsendQueryPrepared(session->connection, statement->name, statement->value_count, statement->values,
                                   NULL, NULL, 0) == 1;
    return PQsendQueryParams(session->connection, statement->numbered, statement->value_count, statement->oids,
                             statement->values, NULL, NULL, 0) == 1;
}

/* The results of the rows, each followed by NULL, then the one of the synchronisation. */
static bool take_results(struct session *session, struct failure *failure)
{
    bool worked = true, between = false;
    for (;;) {
        PGresult *result = PQgetResult(session->connection);
        ExecStatusType status = PQresultStatus(result);
        if (!result && between) /* the connection ended */
            return worked && fail(session, NULL, failure);
        between = !result;
        if (result && status == PGRES_FATAL_ERROR && worked)
            worked = fail(session, result, failure);
        else
            PQclear(result);
        if (status == PGRES_PIPELINE_SYNC)
            return worked;
    }
}

/* The rows between two synchronisations are one transaction. */
static bool pipeline(struct session *session, const struct spec *spec, struct failure *failure)
{
    const struct statement *statement = &spec->statements.items[0];
    bool sent = PQenterPipelineMode(session->connection) == 1;
    for (int64_t i = 0; sent && i < spec->bulk.rows; i++)
        sent = send_row(session, statement);
    if (!sent || PQpipelineSync(session->connection) != 1)
        return fail(session, NULL, failure);
    bool worked = take_results(session, failure);
    return PQexitPipelineMode(session->connection) == 1 ? worked : fail(session, NULL, failure);
}

bool bulk_run(struct session *session, struct spec *spec, int64_t *rows, struct failure *failure)
{
    bool worked = is_copy(spec) ? copy(session, spec, failure)
                                : session_prepare(session, spec->statements.items, failure) && pipeline(session, spec, failure);
    if (worked)
        *rows += spec->bulk.rows;
    return worked;
}

bool bulk_or_statements(struct session *session, struct spec *spec, int64_t *rows, struct failure *failure)
{
    return *spec->bulk.kind ? bulk_run(session, spec, rows, failure)
                            : session_run(session, &spec->statements, rows, failure);
}
