/* One connection to PostgreSQL through libpq, and the statements run on it. */
#ifndef PGPERF_SESSION_H
#define PGPERF_SESSION_H

#include <libpq-fe.h>

#include "failure.h"
#include "spec.h"

/* How a statement is sent: as one text; parsed, bound and executed each time; or prepared once, then executed. */
enum session_mode { SESSION_SIMPLE, SESSION_EXTENDED, SESSION_PREPARED };

struct session {
    PGconn *connection; /* owned */
    enum session_mode mode;
};

/* False if there is no mode of that name. */
bool session_find_mode(const char *name, enum session_mode *mode);

/* Connects by the spec's keywords alone. Whether it worked or not, session_close is to follow. */
bool session_connect(struct session *session, const struct spec *spec, struct failure *failure);
void session_close(struct session *session);

/* Runs the statements in order, once, in the session's mode, and reads every value of every row as libpq hands it
 * out: text. Adds the number of rows to `*rows`. In prepared mode the first call prepares them. */
bool session_run(struct session *session, struct statements *statements, int64_t *rows, struct failure *failure);

/* Runs one SQL text as it is. Its result is the caller's to clear; NULL if it failed. */
PGresult *session_query(struct session *session, const char *sql, struct failure *failure);

#endif
