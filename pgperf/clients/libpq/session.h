/* One connection to PostgreSQL through libpq, and the statements run on it. */
#ifndef PGPERF_SESSION_H
#define PGPERF_SESSION_H

#include <libpq-fe.h>

#include "failure.h"
#include "spec.h"

/* How a statement is sent: as one text; parsed, bound and executed each time; or prepared once and executed. */
enum session_mode { SESSION_SIMPLE, SESSION_EXTENDED, SESSION_PREPARED };

struct session {
    PGconn *connection; /* owned */
    int64_t number;     /* of the connection: 1 for the first */
    enum session_mode mode;
};

/* False if there is no mode of that name. */
bool session_find_mode(const char *name, enum session_mode *mode);

/* Connects with the spec's keywords only. Call session_close afterwards, on failure too. */
bool session_connect(struct session *session, const struct spec *spec, struct failure *failure);
void session_close(struct session *session);

/* Runs the statements in order, once, in the session's mode, and reads every value of every row as text.
 * Adds the number of rows to `*rows`. In prepared mode, the first call prepares the statements. */
bool session_run(struct session *session, struct statements *statements, int64_t *rows, struct failure *failure);

/* In prepared mode, prepares the statement unless it is prepared on this connection. */
bool session_prepare(struct session *session, struct statement *statement, struct failure *failure);

/* Runs one SQL text unchanged. The caller clears the result; NULL on failure. */
PGresult *session_query(struct session *session, const char *sql, struct failure *failure);

#endif
